// An object that is let go with the interpreter's lock held, whoever lets it go: for what threads
// without the lock own.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

namespace libra::python {

class PythonObject {
 public:
  /// Needs the lock, as get() does.
  explicit PythonObject(nanobind::object object) : object_(std::move(object)) {}
  ~PythonObject() {
    const nanobind::gil_scoped_acquire locked;
    object_.reset();
  }
  PythonObject(const PythonObject&) = delete;
  PythonObject& operator=(const PythonObject&) = delete;

  nanobind::object& get() { return object_; }

 private:
  nanobind::object object_;
};

}  // namespace libra::python
