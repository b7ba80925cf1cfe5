// A transport that copies as processes on GPUs do: in order of posting, each copy after the one
// before it in its lane (CopyLane). What needs another order does not end.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "libra/base/task_queue.h"
#include "tests/transport_decorator.h"

namespace libra::testing {

class InLanes final : public TransportDecorator {
 public:
  using TransportDecorator::TransportDecorator;

  Handle post(const Exchange& exchange, Stream& stream) override;
  /// The stream fails if the copies take 10 s.
  void wait(Handle handle, Stream& stream) override;

 private:
  class Gate;
  using SharedGate = std::shared_ptr<Gate>;
  struct Posted {
    Handle copied_by_peers;
    std::vector<SharedGate> copied;
  };

  bool copies(const Transfer& transfer, bool send);
  SharedGate copy(const Tag& tag, const Transfer& transfer, bool send, const SharedGate& reached);

  std::vector<Posted> posted_;
  std::map<CopyLane, TaskQueue> lanes_;
};

}  // namespace libra::testing
