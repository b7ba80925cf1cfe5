#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "libra/attention/conformance/cases.h"
#include "libra/attention/conformance/session.h"
#include "libra/base/error.h"

namespace libra::conformance {
namespace {

struct Arguments {
  AttentionCall call;
  BackwardTensors tensors;
};

struct Wrong {
  const char* what;
  void (*spoil)(Arguments& arguments);
};

DType another(DType dtype) { return dtype == DType::kFp32 ? DType::kFp64 : DType::kFp32; }

// Entry 0 is [0, 10) x [0, 12) with all of 4 and 2 heads.
const std::vector<Wrong>& wrong_forwards() {
  static const std::vector<Wrong> list = {
      {"KV heads do not divide query heads",
       [](Arguments& a) {
         a.call.q_heads = 3;
         a.call.kv_heads = 2;
       }},
      {"no query heads", [](Arguments& a) { a.call.q_heads = 0; }},
      {"no KV heads", [](Arguments& a) { a.call.kv_heads = 0; }},
      {"negative KV heads", [](Arguments& a) { a.call.kv_heads = -2; }},
      {"scale is NaN",
       [](Arguments& a) { a.call.softmax_scale = std::numeric_limits<double>::quiet_NaN(); }},
      {"query rows end too late", [](Arguments& a) { a.call.entries[0].q_row = 1; }},
      {"query rows start too early", [](Arguments& a) { a.call.entries[0].q_row = -1; }},
      {"query rows overflow",
       [](Arguments& a) { a.call.entries[0].q_row = std::numeric_limits<std::int64_t>::max(); }},
      {"key rows end too late", [](Arguments& a) { a.call.entries[0].kv_row = 1; }},
      {"key rows start too early", [](Arguments& a) { a.call.entries[0].kv_row = -1; }},
      {"negative queries", [](Arguments& a) { a.call.entries[0].queries = -1; }},
      {"negative keys", [](Arguments& a) { a.call.entries[0].keys = -1; }},
      {"query head too high", [](Arguments& a) { a.call.entries[0].q_head = 1; }},
      {"query head negative", [](Arguments& a) { a.call.entries[0].q_head = -1; }},
      {"query head shifted out", [](Arguments& a) { a.call.q_head_shift = 1; }},
      {"KV head too high", [](Arguments& a) { a.call.entries[0].kv_head = 1; }},
      {"KV head shifted out", [](Arguments& a) { a.call.kv_head_shift = -1; }},
      {"shift overflows 32 bits",
       [](Arguments& a) {
         a.call.entries[0].q_head = std::numeric_limits<std::int32_t>::max();
         a.call.q_head_shift = std::numeric_limits<std::int32_t>::max();
       }},
      {"k of another dtype", [](Arguments& a) { a.tensors.k.dtype = another(a.tensors.k.dtype); }},
      {"o of another dtype", [](Arguments& a) { a.tensors.o.dtype = another(a.tensors.o.dtype); }},
      {"lse in a storage dtype", [](Arguments& a) { a.tensors.lse.dtype = DType::kBf16; }},
      {"k of another dim", [](Arguments& a) { --a.tensors.k.dim; }},
      {"o of another dim", [](Arguments& a) { --a.tensors.o.dim; }},
      {"lse of two values", [](Arguments& a) { a.tensors.lse.dim = 2; }},
      {"q and k without a dim", [](Arguments& a) { a.tensors.q.dim = a.tensors.k.dim = 0; }},
      {"o with too few rows", [](Arguments& a) { --a.tensors.o.rows; }},
      {"lse with too few heads", [](Arguments& a) { --a.tensors.lse.heads; }},
      {"v without memory", [](Arguments& a) { a.tensors.v.data = nullptr; }},
  };
  return list;
}

const std::vector<Wrong>& wrong_backwards() {
  static const std::vector<Wrong> list = {
      {"dO of another dtype",
       [](Arguments& a) { a.tensors.d_o.dtype = another(a.tensors.d_o.dtype); }},
      {"dO of another dim", [](Arguments& a) { --a.tensors.d_o.dim; }},
      {"dq in a storage dtype", [](Arguments& a) { a.tensors.dq.dtype = DType::kBf16; }},
      {"written gradients in another dtype",
       [](Arguments& a) {
         a.call.gradients = Gradients::kWritten;
         a.tensors.dv.dtype = another(a.tensors.q.dtype);
       }},
      {"dk of another dim", [](Arguments& a) { --a.tensors.dk.dim; }},
      {"dk with too few rows", [](Arguments& a) { --a.tensors.dk.rows; }},
      {"dv with too few heads", [](Arguments& a) { --a.tensors.dv.heads; }},
      {"dq without memory", [](Arguments& a) { a.tensors.dq.data = nullptr; }},
  };
  return list;
}

void expect_refused(Session& session, const Wrong& wrong, bool backward_only) {
  SCOPED_TRACE(wrong.what);
  Arguments a{session.call(), session.backward_views()};
  wrong.spoil(a);
  const BackwardTensors& t = a.tensors;
  EXPECT_THROW(session.backend().backward(a.call, t, session.stream()), ConfigError);
  if (backward_only) return;
  EXPECT_THROW(session.backend().forward(a.call, {t.q, t.k, t.v, t.o, t.lse}, session.stream()),
               ConfigError);
}

class ForeignStream final : public Stream {
 public:
  void mark(Timestamp* out) override { *out = {}; }
  void synchronize() override {}
};

void expect_foreign_stream_refused(Session& session) {
  ForeignStream stream;
  EXPECT_THROW(session.backend().forward(session.call(), session.forward_views(), stream),
               ConfigError);
  EXPECT_THROW(session.backend().backward(session.call(), session.backward_views(), stream),
               ConfigError);
}

void expect_other_dtypes_refused(const Subject& subject, Session& session) {
  const std::vector<DType> supported = subject.dtypes();
  for (const DType dtype : {DType::kFp64, DType::kFp32, DType::kBf16, DType::kFp16}) {
    if (std::find(supported.begin(), supported.end(), dtype) != supported.end()) continue;
    SCOPED_TRACE(dtype_name(dtype));
    ForwardTensors tensors = session.forward_views();
    for (TensorView* view : {&tensors.q, &tensors.k, &tensors.v, &tensors.o}) view->dtype = dtype;
    tensors.lse.dtype = accumulation_dtype(dtype);
    EXPECT_THROW(session.backend().forward(session.call(), tensors, session.stream()), ConfigError);
  }
}

// The sums that gradients are added to are not what they are written to.
void expect_written_sums_refused(const Subject& subject) {
  for (const DType dtype : subject.dtypes()) {
    if (accumulation_dtype(dtype) == dtype) continue;
    SCOPED_TRACE(dtype_name(dtype));
    Rng rng(31);
    const Shape shape{dtype, subject.head_dims().front(), 64, 64, 4, 2};
    Session session(subject, single_entry(shape, Mask::kTopLeftCausal, rng), {}, 5.0);
    AttentionCall call = session.call();
    call.gradients = Gradients::kWritten;
    const auto before = session.images();
    EXPECT_THROW(session.backend().backward(call, session.backward_views(), session.stream()),
                 ConfigError);
    session.synchronize();
    EXPECT_EQ(session.images(), before) << "a refused call wrote something";
  }
}

}  // namespace

void wrong_arguments_throw_at_once(const Subject& subject) {
  Rng rng(30);
  const Shape shape{subject.dtypes().front(), subject.head_dims().front(), 10, 12, 4, 2};
  const Problem problem = single_entry(shape, Mask::kFull, rng);
  Session session(subject, problem, {}, 5.0);
  const auto before = session.images();
  for (const Wrong& wrong : wrong_forwards()) expect_refused(session, wrong, false);
  for (const Wrong& wrong : wrong_backwards()) expect_refused(session, wrong, true);
  expect_foreign_stream_refused(session);
  expect_other_dtypes_refused(subject, session);
  expect_written_sums_refused(subject);
  session.synchronize();
  EXPECT_EQ(session.images(), before) << "a refused call wrote something";
}

}  // namespace libra::conformance
