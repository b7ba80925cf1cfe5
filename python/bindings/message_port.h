// What a message-passing library must be able to do to carry exchanges: the narrow side of
// MessageMover. In Python it is torch.distributed (libra/_port.py).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace libra::python {

/// A message on its way. Its bytes must outlive it.
class Message {
 public:
  virtual ~Message() = default;

  /// Blocks until the message has gone or come. Returns what went wrong, empty if nothing did.
  virtual std::string wait(std::chrono::milliseconds timeout) = 0;
};

/// Thread rules: any thread.
class MessagePort {
 public:
  virtual ~MessagePort() = default;

  /// Begins and returns at once. Messages between two workers under one tag keep their order.
  /// Throws TransportError if the connection is gone.
  virtual std::unique_ptr<Message> send(std::int32_t peer, std::int32_t tag,
                                        std::span<std::byte> bytes) = 0;
  virtual std::unique_ptr<Message> receive(std::int32_t peer, std::int32_t tag,
                                           std::span<std::byte> bytes) = 0;

  /// What became of the connection to this worker; empty if it is there. For now and then.
  virtual std::string lost(std::int32_t peer) = 0;

  /// Ends every wait of every worker soon. The first cause that any worker gives is kept for
  /// first_cause().
  virtual void fail(const std::string& cause) = 0;

  /// What the first worker that failed said; empty if none has, or if it died in silence.
  virtual std::string first_cause() = 0;
};

}  // namespace libra::python
