#include "python/bindings/plugged_attention.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "libra/attention/argument_checks.h"
#include "libra/base/error.h"

namespace nb = nanobind;

namespace libra::python {
namespace {

const SupportedDTypes& all_dtypes() {
  static const SupportedDTypes result = {"attention",
                                         {DType::kFp64, DType::kFp32, DType::kBf16, DType::kFp16}};
  return result;
}

nb::dlpack::dtype dlpack_dtype(DType dtype) {
  const auto code =
      dtype == DType::kBf16 ? nb::dlpack::dtype_code::Bfloat : nb::dlpack::dtype_code::Float;
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * element_bytes(dtype)), 1};
}

// As _entries.py reads it: 7 numbers an entry.
nb::bytes entry_bytes(const std::vector<Entry>& entries) {
  std::vector<std::array<std::int64_t, 7>> numbers;
  numbers.reserve(entries.size());
  for (const Entry& entry : entries) {
    numbers.push_back({entry.q_row, entry.queries, entry.kv_row, entry.keys, entry.q_head,
                       entry.kv_head, static_cast<std::int64_t>(entry.mask)});
  }
  return nb::bytes(numbers.data(), numbers.size() * sizeof(numbers[0]));
}

struct Raised {
  std::string text;
  bool is_config_error;
};

Raised raised(const nb::python_error& error) {
  const std::string text = nb::cast<std::string>(nb::str(error.value()));
  if (error.matches(nb::module_::import_("libra._core").attr("ConfigError"))) return {text, true};
  const auto type = nb::cast<std::string>(nb::str(error.type().attr("__name__")));
  return {fmt::format("the attention kernels raised {}: {}", type, text), false};
}

class PluggedAttention final : public AttentionBackend {
 public:
  PluggedAttention(Kernels kernels, std::unique_ptr<AttentionBackend> own, std::int32_t device,
                   Launch launch)
      : kernels_(std::move(kernels)),
        own_(std::move(own)),
        device_(device),
        launch_(std::move(launch)) {}

  std::string_view name() const override { return "Python kernels"; }

  void prepare(const AttentionCall& call, const ForwardTensors& tensors, Stream&) override {
    check_forward(call, tensors, all_dtypes());
    prepare("prepare_forward", call, views(tensors));
  }
  void prepare(const AttentionCall& call, const BackwardTensors& tensors, Stream&) override {
    check_backward(call, tensors, all_dtypes());
    prepare("prepare_backward", call, views(tensors));
  }

  void forward(const AttentionCall& call, const ForwardTensors& tensors, Stream& stream) override {
    check_forward(call, tensors, all_dtypes());
    launch_(stream, [this, call, tensors] { run("forward", call, views(tensors)); });
  }
  void backward(const AttentionCall& call, const BackwardTensors& tensors,
                Stream& stream) override {
    check_backward(call, tensors, all_dtypes());
    launch_(stream, [this, call, tensors] { run("backward", call, views(tensors)); });
  }

  void copy(StridedView from, StridedView to, Stream& stream) override {
    own_->copy(from, to, stream);
  }
  void fill(const TensorView& tensor, double value, Stream& stream) override {
    own_->fill(tensor, value, stream);
  }
  void add(const TensorView& from, const TensorView& to, Stream& stream) override {
    own_->add(from, to, stream);
  }
  void convert(const TensorView& from, const TensorView& to, Stream& stream) override {
    own_->convert(from, to, stream);
  }
  void poison_on_failure(const TensorView& tensor, Stream& stream) override {
    own_->poison_on_failure(tensor, stream);
  }

 private:
  using Views = std::vector<TensorView>;

  static Views views(const ForwardTensors& t) { return {t.q, t.k, t.v, t.o, t.lse}; }
  static Views views(const BackwardTensors& t) {
    return {t.q, t.k, t.v, t.o, t.lse, t.d_o, t.dq, t.dk, t.dv};
  }

  // Nothing has been posted yet: as with a wrong argument, the pass is refused.
  void prepare(const char* method, const AttentionCall& call, const Views& tensors) {
    const nb::gil_scoped_acquire locked;
    try {
      ask(method, call, tensors);
    } catch (const nb::python_error& error) {
      throw ConfigError(raised(error).text);
    }
  }

  void run(const char* method, const AttentionCall& call, const Views& tensors) {
    const nb::gil_scoped_acquire locked;
    try {
      ask(method, call, tensors);
    } catch (const nb::python_error& error) {
      const auto [text, is_config_error] = raised(error);
      if (is_config_error) throw ConfigError(text);
      throw Error(text);
    }
  }

  void ask(const char* method, const AttentionCall& call, const Views& tensors) {
    nb::list given;
    for (const TensorView& tensor : tensors) given.append(torch_tensor(tensor));
    const auto heads =
        nb::make_tuple(call.q_heads, call.kv_heads, call.q_head_shift, call.kv_head_shift);
    kernels_->get().attr(method)(entry_bytes(call.entries), heads, call.softmax_scale, *given);
  }

  nb::object torch_tensor(const TensorView& t) const {
    const std::array<std::size_t, 3> shape = {static_cast<std::size_t>(t.rows),
                                              static_cast<std::size_t>(t.heads),
                                              static_cast<std::size_t>(t.dim)};
    const std::array<std::int64_t, 3> strides = {t.row_stride, t.head_stride, 1};
    const bool on_cpu = device_ < 0;
    const nb::ndarray<nb::pytorch> array(
        t.data, shape.size(), shape.data(), nb::handle(), strides.data(), dlpack_dtype(t.dtype),
        on_cpu ? nb::device::cpu::value : nb::device::cuda::value, on_cpu ? 0 : device_);
    return nb::cast(array, nb::rv_policy::reference);
  }

  Kernels kernels_;
  std::unique_ptr<AttentionBackend> own_;
  std::int32_t device_;
  Launch launch_;
};

}  // namespace

Kernels kernels_of(nb::object runner) {
  return runner.is_none() ? nullptr : std::make_shared<PythonObject>(std::move(runner));
}

std::unique_ptr<AttentionBackend> plug_in(Kernels kernels, std::unique_ptr<AttentionBackend> own,
                                          std::int32_t device, Launch launch) {
  if (kernels == nullptr) return own;
  return std::make_unique<PluggedAttention>(std::move(kernels), std::move(own), device,
                                            std::move(launch));
}

}  // namespace libra::python
