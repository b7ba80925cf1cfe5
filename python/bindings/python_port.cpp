#include "python/bindings/python_port.h"

#include <nanobind/stl/chrono.h>
#include <nanobind/stl/string.h>

#include <utility>

#include "libra/base/error.h"
#include "python/bindings/python_object.h"

namespace nb = nanobind;

namespace libra::python {
namespace {

class PythonMessage final : public Message {
 public:
  explicit PythonMessage(nb::object work) : work_(std::move(work)) {}

  std::string wait(std::chrono::milliseconds timeout) override {
    const nb::gil_scoped_acquire locked;
    try {
      work_.get().attr("wait")(timeout);
      return {};
    } catch (const nb::python_error& error) {
      return nb::cast<std::string>(nb::str(error.value()));
    }
  }

 private:
  PythonObject work_;
};

class PythonPort final : public MessagePort {
 public:
  explicit PythonPort(nb::object port) : port_(std::move(port)) {}

  std::unique_ptr<Message> send(std::int32_t peer, std::int32_t tag,
                                std::span<std::byte> bytes) override {
    return begin("send", peer, tag, bytes);
  }

  std::unique_ptr<Message> receive(std::int32_t peer, std::int32_t tag,
                                   std::span<std::byte> bytes) override {
    return begin("receive", peer, tag, bytes);
  }

  void fail(const std::string& cause) override {
    const nb::gil_scoped_acquire locked;
    try {
      port_.get().attr("fail")(cause);
    } catch (const nb::python_error&) {  // the peers find out at their deadline
    }
  }

  std::string first_cause() override { return ask("first_cause"); }
  std::string lost(std::int32_t peer) override { return ask("lost", peer); }

 private:
  // Empty if there is no answer.
  template <typename... Args>
  std::string ask(const char* what, Args... args) {
    const nb::gil_scoped_acquire locked;
    try {
      return nb::cast<std::string>(port_.get().attr(what)(args...));
    } catch (const nb::python_error&) {
      return {};
    }
  }

  std::unique_ptr<Message> begin(const char* what, std::int32_t peer, std::int32_t tag,
                                 std::span<std::byte> bytes) {
    const nb::gil_scoped_acquire locked;
    try {
      const auto view =
          nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char*>(bytes.data()),
                                            static_cast<Py_ssize_t>(bytes.size()), PyBUF_WRITE));
      return std::make_unique<PythonMessage>(port_.get().attr(what)(peer, tag, view));
    } catch (const nb::python_error& error) {
      throw TransportError(nb::cast<std::string>(nb::str(error.value())));
    }
  }

  PythonObject port_;
};

}  // namespace

std::shared_ptr<MessagePort> make_python_port(nb::object port) {
  return std::make_shared<PythonPort>(std::move(port));
}

}  // namespace libra::python
