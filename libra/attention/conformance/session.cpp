#include "libra/attention/conformance/session.h"

namespace libra::conformance {

Layouts random_layouts(Rng& rng) {
  Layouts layouts;
  for (Layout& layout : layouts) {
    layout.heads_outermost = rng.below(2) == 0;
    // Whole 16-byte units: what vectorised backends ask of a stride.
    layout.inner_gap = static_cast<std::int64_t>(rng.below(3)) * 8;
    layout.outer_gap = static_cast<std::int64_t>(rng.below(3)) * 8;
  }
  return layouts;
}

Session::Session(const Subject& subject, const Problem& problem, const Layouts& layouts,
                 double poison)
    : Session(subject, problem, layouts, blank_results(problem, poison)) {}

Session::Session(const Subject& subject, const Problem& problem, const Layouts& layouts,
                 const Results& blank)
    : call_(problem.call),
      q_(subject, problem.q, layouts[0]),
      k_(subject, problem.k, layouts[1]),
      v_(subject, problem.v, layouts[2]),
      o_(subject, blank.o, layouts[3]),
      lse_(subject, blank.lse, layouts[4]),
      d_o_(subject, problem.d_o, layouts[5]),
      dq_(subject, blank.dq, layouts[6]),
      dk_(subject, blank.dk, layouts[7]),
      dv_(subject, blank.dv, layouts[8]),
      backend_(subject.make_backend()),
      stream_(subject.make_stream()) {}

ForwardTensors Session::forward_views() const {
  return {q_.view(), k_.view(), v_.view(), o_.view(), lse_.view()};
}

BackwardTensors Session::backward_views() const {
  return {q_.view(),   k_.view(),  v_.view(),  o_.view(), lse_.view(),
          d_o_.view(), dq_.view(), dk_.view(), dv_.view()};
}

Results Session::download() const {
  return {o_.download(), lse_.download(), dq_.download(), dk_.download(), dv_.download()};
}

std::vector<std::vector<std::byte>> Session::images() const {
  return {o_.image(), lse_.image(), dq_.image(), dk_.image(), dv_.image()};
}

Results run(const Subject& subject, const Problem& problem, const Layouts& layouts, double poison) {
  Session session(subject, problem, layouts, poison);
  session.forward();
  session.backward();
  session.synchronize();
  return session.download();
}

}  // namespace libra::conformance
