#include "libra/attention/cudnn/sdpa_graph.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <unordered_map>

#include "libra/base/error.h"
#include "libra/cuda/cuda_error.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wextra"
#include <cudnn_frontend.h>
#pragma GCC diagnostic pop

namespace libra::cudnn {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

// Numbers of the graph's tensors: ports, their offsets, and the rest.
enum Uid : std::int64_t { kPorts = 1, kOffsets = 101, kScale = 201, kQueries, kKeys };

std::int64_t uid_of(Port port) { return kPorts + static_cast<std::int64_t>(port); }
std::int64_t offsets_of(Port port) { return kOffsets + static_cast<std::int64_t>(port); }

constexpr std::array<Port, 5> kForwardPorts = {Port::kQ, Port::kK, Port::kV, Port::kO, Port::kLse};
constexpr std::array<Port, kNumPorts> kBackwardPorts = {
    Port::kQ, Port::kK, Port::kV, Port::kO, Port::kLse, Port::kDo, Port::kDq, Port::kDk, Port::kDv};

fe::DataType_t data_type(DType dtype) {
  if (dtype == DType::kFp32) return fe::DataType_t::FLOAT;
  return dtype == DType::kBf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF;
}

// cuDNN explains itself in pages; the first line names the step that failed.
std::string first_line(const std::string& message) { return message.substr(0, message.find('\n')); }

void check(fe::error_t status, const SdpaShape& shape) {
  if (status.is_good()) return;
  throw ConfigError(
      fmt::format("cuDNN {} has no fused attention for {}, dims {} and {}, {}:{} heads ({}): use a "
                  "head dimension "
                  "that it supports, or another backend",
                  cudnnGetVersion(), dtype_name(shape.dtypes[Port::kQ]), shape.qk_dim, shape.v_dim,
                  shape.q_heads, shape.kv_heads, first_line(status.get_message())));
}

class Builder {
 public:
  explicit Builder(const SdpaShape& shape) : shape_(shape) {
    graph_->set_io_data_type(data_type(shape.dtypes[Port::kQ]))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
  }

  std::shared_ptr<fe::graph::Graph> build(cudnnHandle_t handle) {
    if (shape_.pass == Pass::kForward) {
      forward();
    } else {
      backward();
    }
    check(graph_->validate(), shape_);
    check(graph_->build_operation_graph(handle), shape_);
    check(graph_->create_execution_plans({fe::HeurMode_t::A}), shape_);
    check(graph_->check_support(handle), shape_);
    check(graph_->build_plans(handle), shape_);
    return graph_;
  }

 private:
  struct Axes {
    std::int32_t heads;
    std::int64_t max_rows;
    std::int32_t dim;
  };

  Axes axes_of(Port port) const {
    switch (port) {
      case Port::kQ:
      case Port::kDq:
        return {shape_.q_heads, shape_.max_queries, shape_.qk_dim};
      case Port::kK:
      case Port::kDk:
        return {shape_.kv_heads, shape_.max_keys, shape_.qk_dim};
      case Port::kV:
      case Port::kDv:
        return {shape_.kv_heads, shape_.max_keys, shape_.v_dim};
      case Port::kO:
      case Port::kDo:
        return {shape_.q_heads, shape_.max_queries, shape_.v_dim};
      case Port::kLse:
        break;
    }
    return {shape_.q_heads, shape_.max_queries, 1};
  }

  // The distance between entries is never used, since every entry has an offset of its own.
  void describe(fe::graph::Tensor_attributes& tensor, Port port) {
    const Axes axes = axes_of(port);
    const Strides& strides = shape_.strides[port];
    tensor.set_uid(uid_of(port))
        .set_data_type(data_type(shape_.dtypes[port]))
        .set_dim({shape_.entries, axes.heads, axes.max_rows, axes.dim})
        .set_stride({strides.row * axes.max_rows, strides.head, strides.row, 1})
        .set_ragged_offset(indices(offsets_of(port), shape_.entries + 1, fe::DataType_t::INT64));
  }

  Tensor indices(std::int64_t uid, std::int64_t count, fe::DataType_t type) {
    return graph_->tensor(fe::graph::Tensor_attributes()
                              .set_uid(uid)
                              .set_dim({count, 1, 1, 1})
                              .set_stride({1, 1, 1, 1})
                              .set_data_type(type));
  }

  Tensor input(Port port) {
    fe::graph::Tensor_attributes tensor;
    describe(tensor, port);
    return graph_->tensor(tensor);
  }

  void output(const Tensor& tensor, Port port) {
    describe(*tensor, port);
    tensor->set_output(true);
  }

  template <typename Options>
  Options options() {
    Options result;
    result.set_name("attention")
        .set_padding_mask(true)
        .set_seq_len_q(indices(kQueries, shape_.entries, fe::DataType_t::INT32))
        .set_seq_len_kv(indices(kKeys, shape_.entries, fe::DataType_t::INT32))
        .set_attn_scale(graph_->tensor(fe::graph::Tensor_attributes()
                                           .set_uid(kScale)
                                           .set_dim({1, 1, 1, 1})
                                           .set_stride({1, 1, 1, 1})
                                           .set_data_type(fe::DataType_t::FLOAT)
                                           .set_is_pass_by_value(true)));
    if (shape_.mask == Mask::kFull) return result;
    result.set_diagonal_alignment(shape_.mask == Mask::kTopLeftCausal
                                      ? fe::DiagonalAlignment_t::TOP_LEFT
                                      : fe::DiagonalAlignment_t::BOTTOM_RIGHT);
    result.set_diagonal_band_right_bound(0);
    return result;
  }

  void forward() {
    auto attributes = options<fe::graph::SDPA_attributes>();
    attributes.set_generate_stats(true);
    const auto [o, lse] =
        graph_->sdpa(input(Port::kQ), input(Port::kK), input(Port::kV), attributes);
    output(o, Port::kO);
    output(lse, Port::kLse);
  }

  void backward() {
    auto attributes = options<fe::graph::SDPA_backward_attributes>();
    attributes.set_deterministic_algorithm(shape_.deterministic);
    attributes.set_max_total_seq_len_q(shape_.total_queries);
    attributes.set_max_total_seq_len_kv(shape_.total_keys);
    const auto [dq, dk, dv] =
        graph_->sdpa_backward(input(Port::kQ), input(Port::kK), input(Port::kV), input(Port::kO),
                              input(Port::kDo), input(Port::kLse), attributes);
    output(dq, Port::kDq);
    output(dk, Port::kDk);
    output(dv, Port::kDv);
  }

  const SdpaShape& shape_;
  std::shared_ptr<fe::graph::Graph> graph_ = std::make_shared<fe::graph::Graph>();
};

}  // namespace

struct SdpaGraph::Impl {
  Impl(const SdpaShape& shape, cudnnHandle_t handle)
      : graph(Builder(shape).build(handle)), backward(shape.pass == Pass::kBackward) {
    check(graph->get_workspace_size(workspace_bytes), shape);
  }

  void bind(std::int64_t uid, const void* memory) {
    pointers[uid] = const_cast<void*>(memory);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }

  template <std::size_t kCount>
  void bind(const std::array<Port, kCount>& ports, const SdpaMemory& memory) {
    for (const Port port : ports) {
      bind(uid_of(port), memory.tensors[port]);
      bind(offsets_of(port), memory.offsets[port]);
    }
  }

  std::shared_ptr<fe::graph::Graph> graph;
  bool backward;
  std::int64_t workspace_bytes = 0;
  float scale = 1;
  std::unordered_map<std::int64_t, void*> pointers;  // kept, so that a run allocates nothing
};

SdpaGraph::SdpaGraph(const SdpaShape& shape, cudnnHandle_t handle)
    : impl_(std::make_unique<Impl>(shape, handle)) {}

SdpaGraph::~SdpaGraph() = default;

std::int64_t SdpaGraph::workspace_bytes() const { return impl_->workspace_bytes; }

void SdpaGraph::run(cudnnHandle_t handle, const SdpaMemory& memory, void* workspace) {
  Impl& impl = *impl_;
  impl.scale = memory.scale;
  impl.bind(kScale, &impl.scale);
  impl.bind(kQueries, memory.queries);
  impl.bind(kKeys, memory.keys);
  if (impl.backward) {
    impl.bind(kBackwardPorts, memory);
  } else {
    impl.bind(kForwardPorts, memory);
  }
  fe::error_t status = impl.graph->execute(handle, impl.pointers, workspace);
  if (status.is_good()) return;
  throw DeviceError(
      fmt::format("cuDNN could not run fused attention: {}", first_line(status.get_message())));
}

}  // namespace libra::cudnn
