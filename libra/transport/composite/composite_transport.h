// Two transports as one: each transfer goes over the one that reaches its peer best, copy engines
// inside an NVLink domain, NCCL across nodes.
//
//   std::vector<bool> near = {true, true, false, false};   // by peer: which the first one serves
//   auto transport = make_composite(std::move(peer), std::move(nccl), near);
//
// The arena is the first one's; the second must be able to use memory that it did not allocate.
//
// Failure: what one of them throws aborts the other, too. A worker that hears of a failure through
// the other transport may be told who gave up instead of why.
#pragma once

#include <memory>
#include <vector>

#include "libra/transport/transport.h"

namespace libra {

/// Both transports have the same workers and are this worker's end; one that has less is wrapped
/// (part_transport.h). near[p]: peer p is served by
/// `first`; both ends of a pair must agree on it. Throws ConfigError if the three do not fit.
std::unique_ptr<Transport> make_composite(std::unique_ptr<Transport> first,
                                          std::unique_ptr<Transport> second,
                                          std::vector<bool> near);

}  // namespace libra
