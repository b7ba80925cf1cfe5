#include "libra/attention/cudnn/cudnn_attention.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "libra/attention/conformance/attention_conformance.h"
#include "libra/attention/conformance/session.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/cuda/cuda_memory.h"
#include "libra/cuda/cuda_stream.h"
#include "libra/cuda/device.h"

namespace libra::conformance {
namespace {

constexpr std::int32_t kDevice = 0;

class CudnnSubject : public Subject {
 public:
  explicit CudnnSubject(const CudnnOptions& options = {std::int64_t{256} << 20, false})
      : options_(options) {}

  std::string why_not() const override {
    return device_count() > 0 ? "" : "no GPU that this process can use";
  }
  std::unique_ptr<AttentionBackend> make_backend() const override {
    return std::make_unique<CudnnAttention>(kDevice, options_);
  }
  std::unique_ptr<Stream> make_stream() const override {
    return std::make_unique<CudaStream>(kDevice);
  }
  std::shared_ptr<std::byte> allocate(std::int64_t bytes) const override {
    return allocate_device(kDevice, bytes);
  }
  void upload(const std::byte* from, std::byte* to, std::int64_t bytes) const override {
    copy_memory(from, to, bytes);
  }
  void download(const std::byte* from, std::byte* to, std::int64_t bytes) const override {
    copy_memory(from, to, bytes);
  }
  void fail(Stream& stream) const override { as_cuda(stream).failure()->fail("a peer is gone"); }
  std::vector<DType> dtypes() const override { return {DType::kBf16, DType::kFp16}; }
  std::vector<HeadDims> head_dims() const override {
    return {{64, 64}, {80, 80}, {96, 96}, {128, 128}, {192, 192}, {256, 256}, {192, 128}};
  }
  bool rounds_gradients() const override { return true; }

 private:
  CudnnOptions options_;
};

class DeterministicSubject final : public CudnnSubject {
 public:
  DeterministicSubject() : CudnnSubject({std::int64_t{256} << 20, true}) {}
};

INSTANTIATE_TYPED_TEST_SUITE_P(Cudnn, AttentionConformance, CudnnSubject);
INSTANTIATE_TYPED_TEST_SUITE_P(CudnnDeterministic, AttentionConformance, DeterministicSubject);

constexpr Shape kShape{DType::kBf16, {128, 128}, 4096, 4096, 4, 2};

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = subject_.why_not(); !reason.empty()) GTEST_SKIP() << reason;
  }

  static CudnnAttention& backend_of(Session& session) {
    return dynamic_cast<CudnnAttention&>(session.backend());
  }

  CudnnSubject subject_;
};

// Causal samples of random lengths that fill the rows of kShape.
AttentionCall random_call(Rng& rng) {
  AttentionCall call;
  call.q_heads = kShape.q_heads;
  call.kv_heads = kShape.kv_heads;
  for (std::int64_t row = 0; row < kShape.q_rows;) {
    const auto length = static_cast<std::int64_t>(1 + rng.below(rng.below(8) == 0 ? 3000 : 400));
    const std::int64_t rows = std::min(length, kShape.q_rows - row);
    call.entries.push_back({row, rows, 0, row + rows, 0, 0, Mask::kBottomRightCausal});
    row += rows;
  }
  return call;
}

TEST_F(OnGpu, NothingIsBuiltAndLittleAllocatedAfterWarmUp) {
  Rng rng(1);
  Session session(subject_, make_problem(random_call(rng), kShape, rng));
  CudnnAttention& attention = backend_of(session);
  attention.warm_up(session.call(), session.forward_views(), kShape.q_rows);
  attention.warm_up(session.call(), session.backward_views(), kShape.q_rows);
  const std::int64_t builds = attention.graph_builds();
  EXPECT_GT(builds, 0);
  for (int i = 0; i < 20; ++i) {
    const AttentionCall call = random_call(rng);
    session.forward(call);
    session.backward(call);
  }
  session.synchronize();
  EXPECT_EQ(attention.graph_builds(), builds);
  EXPECT_LE(attention.scratch_bytes(), std::int64_t{400} << 20) << "the cap is 256 MB of tensors";
}

TEST_F(OnGpu, TheSameCallAgainBuildsAndAllocatesNothing) {
  Rng rng(2);
  Session session(subject_, make_problem(random_call(rng), kShape, rng));
  session.forward();
  session.backward();
  CudnnAttention& attention = backend_of(session);
  const std::int64_t builds = attention.graph_builds();
  const std::int64_t allocations = attention.scratch_allocations();
  for (int i = 0; i < 3; ++i) {
    session.forward();
    session.backward();
  }
  session.synchronize();
  EXPECT_EQ(attention.graph_builds(), builds);
  EXPECT_EQ(attention.scratch_allocations(), allocations);
}

TEST_F(OnGpu, ACallLikeAnEarlierOneIsPreparedOnce) {
  Rng rng(7);
  Session session(subject_, make_problem(random_call(rng), kShape, rng));
  session.forward();
  session.backward();
  CudnnAttention& attention = backend_of(session);
  EXPECT_EQ(attention.preparations(), 2);
  session.forward();
  EXPECT_EQ(attention.preparations(), 2);
  for (int i = 0; i < 3; ++i) session.forward(random_call(rng));
  EXPECT_EQ(attention.preparations(), 5);
  session.synchronize();
}

// So many tables that earlier ones are overwritten while kernels that read them are still to run.
TEST_F(OnGpu, ForgottenPassesArePreparedAgain) {
  constexpr int kCalls = 800;  // of 100 KB
  Rng rng(8);
  const Problem problem = make_problem(random_call(rng), kShape, rng);
  Session session(subject_, problem);
  session.forward();
  session.synchronize();
  const auto first = session.images();
  for (int i = 0; i < kCalls; ++i) {
    AttentionCall call = problem.call;
    call.entries.clear();
    for (std::int64_t row = 0; row < 2000; ++row) {
      const auto keys = static_cast<std::int64_t>(1 + rng.below(50));
      call.entries.push_back({row, 1, 0, keys, 0, 0, Mask::kFull});
    }
    session.forward(call);
  }
  session.forward();
  session.synchronize();
  EXPECT_EQ(session.images(), first);
  EXPECT_EQ(backend_of(session).preparations(), kCalls + 2);
}

TEST_F(OnGpu, BackendsOfOneProcessShareGraphs) {
  Rng rng(3);
  const Problem problem = make_problem(random_call(rng), kShape, rng);
  Session first(subject_, problem), second(subject_, problem);
  first.forward();
  const std::int64_t builds = backend_of(first).graph_builds();
  second.forward();
  EXPECT_EQ(backend_of(second).graph_builds(), builds);
}

TEST_F(OnGpu, ThreadsThatShareADeviceGetTheirOwnResults) {
  constexpr int kThreads = 4;
  std::vector<HostTensor> alone, together;
  std::vector<Problem> problems;
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < kThreads; ++i) {
    Rng rng(static_cast<std::uint64_t>(i));
    problems.push_back(make_problem(random_call(rng), kShape, rng));
    alone.push_back(run(subject_, problems.back()).dk);
    sessions.push_back(std::make_unique<Session>(subject_, problems.back()));
  }
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (const auto& session : sessions) {
    threads.emplace_back([&session] {
      for (int i = 0; i < 10; ++i) session->forward();
      session->backward();
      session->synchronize();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& session : sessions) together.push_back(session->download().dk);
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(together[at(i)].values, alone[at(i)].values);
}

void expect_equal_but_for_rounding(const HostTensor& a, const HostTensor& b) {
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    largest = std::max(largest, std::abs(a.values[i]));
    error = std::max(error, std::abs(a.values[i] - b.values[i]));
  }
  EXPECT_LE(error, 2 * step(DType::kBf16) * largest) << "a rounding of each at most";
}

TEST_F(OnGpu, LessScratchGivesTheSameGradientsInMoreCalls) {
  Rng rng(4);
  const Problem problem = make_problem(random_call(rng), kShape, rng);
  const auto dk_of = [&](std::int64_t bytes) {
    const CudnnSubject subject({bytes, false});
    Session session(subject, problem);
    session.forward();
    session.backward();
    session.synchronize();
    return session.download().dk;
  };
  expect_equal_but_for_rounding(dk_of(std::int64_t{1} << 30), dk_of(std::int64_t{16} << 20));
}

// Head groups over the same rows, in scratch memory that has no room to spare for them.
TEST_F(OnGpu, WrittenGradientsOfHeadGroupsFitTheScratchMemory) {
  Rng rng(9);
  AttentionCall call;
  call.q_heads = 2;
  call.kv_heads = 1;
  call.gradients = Gradients::kWritten;
  for (const std::int32_t group : {0, 1}) {
    for (std::int64_t row = 0; row < kShape.q_rows; row += 512) {
      call.entries.push_back({row, 512, row, 512, 2 * group, group, Mask::kTopLeftCausal});
    }
  }
  const Problem problem = make_problem(call, kShape, rng);
  const auto gradients_in = [&](std::int64_t scratch_bytes) {
    const CudnnSubject subject({scratch_bytes, false});
    Session session(subject, problem);
    EXPECT_TRUE(session.backend().can_write(session.call(), session.backward_views()));
    session.forward();
    session.backward();
    session.synchronize();
    EXPECT_LE(backend_of(session).scratch_bytes(), scratch_bytes + (std::int64_t{32} << 20));
    return session.download();
  };
  const Results roomy = gradients_in(std::int64_t{1} << 30);
  for (std::int64_t mb = 8; mb <= 64; mb += 4) {
    const Results tight = gradients_in(mb << 20);
    SCOPED_TRACE(mb);
    expect_equal_but_for_rounding(roomy.dq, tight.dq);
    expect_equal_but_for_rounding(roomy.dk, tight.dk);
    expect_equal_but_for_rounding(roomy.dv, tight.dv);
  }
}

TEST_F(OnGpu, GradientsThatAreSumsAreNotWritten) {
  Rng rng(10);
  AttentionCall call;
  call.gradients = Gradients::kWritten;
  call.entries = {{0, 10, 0, 20, 0, 0, Mask::kBottomRightCausal}};  // a square and a rectangle
  Session session(subject_, make_problem(call, kShape, rng));
  EXPECT_FALSE(session.backend().can_write(session.call(), session.backward_views()));
  EXPECT_THROW(session.backward(), ConfigError);
}

TEST_F(OnGpu, DeterministicGradientsOfManyTilesHaveTheSameBits) {
  const DeterministicSubject subject;
  Rng rng(5);
  const Problem problem = make_problem(random_call(rng), kShape, rng);
  const auto bits = [&] {
    Session session(subject, problem);
    session.forward();
    session.backward();
    session.synchronize();
    return session.images();
  };
  const auto first = bits();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bits(), first);
}

TEST_F(OnGpu, UnalignedRowsAndOddDimensionsAreRefused) {
  Rng rng(6);
  Session session(subject_, make_problem(random_call(rng), kShape, rng));
  ForwardTensors odd = session.forward_views();
  odd.k.row_stride += 4;
  EXPECT_THROW(session.backend().forward(session.call(), odd, session.stream()), ConfigError);
  odd = session.forward_views();
  odd.v.dim = odd.o.dim = 72;
  EXPECT_THROW(session.backend().forward(session.call(), odd, session.stream()), ConfigError);
}

}  // namespace
}  // namespace libra::conformance
