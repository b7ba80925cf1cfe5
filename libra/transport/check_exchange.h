// What every transport asks of an exchange before it takes it.
#pragma once

#include <cstdint>

#include "libra/transport/transport.h"

namespace libra {

/// Throws ConfigError that names the tag's field, or the transfer, that is out of bounds: step >=
/// 0, chunk in [0, 256), round in [0, 16), peers in [0, workers), and of each view no negative
/// count, rows that do not overlap (stride_bytes >= row_bytes if there are several), and memory if
/// there are bytes. A worker may exchange with itself.
void check_exchange(const Exchange& exchange, std::int32_t worker, std::int32_t workers);

/// Throws ConfigError if the deadline is not positive.
void check_options(const TransportOptions& options);

}  // namespace libra
