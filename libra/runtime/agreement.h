// Do all workers hold the same plan? Each sends its plan's fingerprint to all others; a mismatch is
// an error on every rank, before anything of the plan is used.
//
//   Agreement agreement(plan_fingerprint(plan), context, stream);  // when the plan is prefetched
//   ...
//   agreement.check();                                             // at first use
#pragma once

#include <cstdint>
#include <vector>

#include "libra/runtime/pipeliner.h"

namespace libra {

class Agreement {
 public:
  /// Posts the exchange on `stream`, which must outlive this and be one that nothing else waits on
  /// for long.
  Agreement(std::uint64_t fingerprint, WorkerContext& context, Stream& stream);
  /// Waits as check() does, if nobody called it: peers may still write here.
  ~Agreement();
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  /// Waits for the others' fingerprints (within the transport's deadline). Throws PlanError that
  /// names the workers that differ, on every worker; TransportError if one does not come.
  void check();

 private:
  void await();

  WorkerContext& context_;
  Stream& stream_;
  std::vector<std::uint64_t> fingerprints_;  // by worker; own among them
  Handle handle_;
  bool checked_ = false;
};

}  // namespace libra
