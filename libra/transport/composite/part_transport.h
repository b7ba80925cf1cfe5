// A transport among some of a pool's workers, those of a host, seen by their numbers in the pool:
// what make_composite takes for its near peers.
//
//   auto host = make_peer_process({name, 1, 2, device}, options);   // 1 of 2 on this host ...
//   auto part = make_part(std::move(host), {4, 5}, 8);              // ... is 5 of 8 in the pool
//
// Errors of the part name its workers by their numbers in the part.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libra/transport/transport.h"

namespace libra {

/// members[w]: number in the pool of worker w of `part`. Exchanges with others throw ConfigError.
/// Throws ConfigError for members that are not as many different workers of the pool as the part
/// has.
std::unique_ptr<Transport> make_part(std::unique_ptr<Transport> part,
                                     std::vector<std::int32_t> members, std::int32_t workers);

}  // namespace libra
