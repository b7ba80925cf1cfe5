#include "libra/sim/overlap.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "libra/base/index.h"

namespace libra {
namespace {

constexpr std::size_t kSlots = 2;  // chunks that fit into a guest's memory

void raise(double& time, double to) { time = std::max(time, to); }

class PassClock {
 public:
  PassClock(const PoolPassTimes& pass, double loss)
      : pass_(pass),
        loss_(loss),
        chunks_(pass.workers.front().exchange_s.size() - kSlots),
        timelines_(pass.workers.size()),
        lane_free_(pass.workers.size(), 0) {}

  std::vector<PassTimeline> run() {
    const std::vector<double> begins = local_begins();
    for (std::size_t w = 0; w < timelines_.size(); ++w) compute_local(w, begins[w]);
    for (std::size_t phase = 0; phase < chunks_ + kSlots; ++phase) {
      exchange(phase);
      for (std::size_t w = 0; w < timelines_.size() && phase < chunks_; ++w) {
        compute_chunk(w, phase);
      }
    }
    const std::vector<double> home = results_home();
    for (std::size_t w = 0; w < timelines_.size(); ++w) {
      const double work = pass_.workers[w].last_s;
      const double begin = std::max(last_end(w), work > 0 ? home[w] : 0);
      timelines_[w].compute.push_back({begin, begin + work});
    }
    return std::move(timelines_);
  }

 private:
  // Chunks are computed after the local work, span 0; those before chunk 0 are that.
  double chunk_end_before(std::size_t worker, std::size_t phase) const {
    const std::size_t span = phase < kSlots ? 0 : phase - kSlots + 1;
    return timelines_[worker].compute[span].end_s;
  }

  double last_end(std::size_t worker) const {
    const PassTimeline& timeline = timelines_[worker];
    return std::max(timeline.compute.back().end_s, timeline.exchange.back().end_s);
  }

  double traffic(std::size_t worker, std::size_t phase) const {
    return pass_.workers[worker].exchange_s[phase];
  }

  void compute(std::size_t worker, double begin, double seconds, double traffic_beside) {
    const double slowed = seconds + loss_ * std::min(seconds, traffic_beside);
    timelines_[worker].compute.push_back({begin, begin + slowed});
  }

  // After phase 0, on workers that have to pass some of it on.
  std::vector<double> local_begins() const {
    std::vector<double> begins(timelines_.size(), 0);
    if (pass_.posts_ahead || pass_.flows.empty()) return begins;
    for (const Sending& sending : pass_.flows.front().passed_on) {
      begins[at(sending.from)] = traffic(at(sending.from), 0);
    }
    return begins;
  }

  // Both first phases run under it.
  void compute_local(std::size_t worker, double begin) {
    compute(worker, begin, pass_.workers[worker].local_s, traffic(worker, 0) + traffic(worker, 1));
  }

  void compute_chunk(std::size_t worker, std::size_t chunk) {
    const ChunkedPassTimes& own = pass_.workers[worker];
    double beside = traffic(worker, chunk + 1);
    if (chunk == 0) beside = std::clamp(traffic(worker, 0) + beside - own.local_s, 0.0, beside);
    const double begin =
        std::max(timelines_[worker].compute.back().end_s, timelines_[worker].exchange[chunk].end_s);
    compute(worker, begin, own.chunk_compute_s, beside);
  }

  void exchange(std::size_t phase) {
    std::vector<double> begins(timelines_.size(), 0);
    for (std::size_t w = 0; w < begins.size(); ++w) {
      if (phase > 0) begins[w] = timelines_[w].exchange.back().end_s;
      if (phase >= chunks_) raise(begins[w], chunk_end_before(w, phase));
    }
    if (phase < pass_.flows.size()) {
      pass_.posts_ahead ? lend(phase, begins) : meet(phase, begins);
    }
    for (std::size_t w = 0; w < begins.size(); ++w) {
      timelines_[w].exchange.push_back({begins[w], begins[w] + traffic(w, phase)});
    }
  }

  // From every home to one guest after the other.
  void lend(std::size_t phase, std::vector<double>& begins) {
    for (const Sending& flow : in_turn(pass_.flows[phase].lent)) {
      double& lane = lane_free_[at(flow.from)];
      if (phase >= kSlots) raise(lane, chunk_end_before(at(flow.to), phase));
      raise(begins[at(flow.to)], lane);
    }
    for (std::size_t w = 0; w < lane_free_.size(); ++w) lane_free_[w] += traffic(w, phase);
  }

  std::vector<Sending> in_turn(std::vector<Sending> flows) const {
    const auto workers = static_cast<std::int32_t>(timelines_.size());
    const auto turn = [workers](const Sending& flow) {
      return (flow.to - flow.from + workers) % workers;
    };
    std::sort(flows.begin(), flows.end(), [&turn](const Sending& a, const Sending& b) {
      return std::pair(a.from, turn(a)) < std::pair(b.from, turn(b));
    });
    return flows;
  }

  // When both ends have come to the phase. What relays pass on in phase 0 they have then.
  void meet(std::size_t phase, std::vector<double>& begins) const {
    if (phase >= kSlots) {
      for (std::size_t w = 0; w < begins.size(); ++w) raise(begins[w], chunk_end_before(w, phase));
    }
    const std::vector<double> own = begins;
    for (const Sending& flow : pass_.flows[phase].lent) {
      raise(begins[at(flow.from)], own[at(flow.to)]);
      raise(begins[at(flow.to)], own[at(flow.from)]);
    }
    if (phase == 0) return;
    for (const Sending& flow : pass_.flows[phase].passed_on) {
      raise(begins[at(flow.to)], chunk_end_before(at(flow.from), phase));
    }
  }

  // When every home's last results have left their guests.
  std::vector<double> results_home() const {
    std::vector<double> home(timelines_.size(), 0);
    for (const PhaseFlows& flows : pass_.flows) {
      for (const Sending& flow : flows.lent) raise(home[at(flow.from)], last_end(at(flow.to)));
    }
    return home;
  }

  const PoolPassTimes& pass_;
  double loss_;
  std::size_t chunks_;
  std::vector<PassTimeline> timelines_;
  std::vector<double> lane_free_;  // when a home has sent all of the phases so far
};

}  // namespace

std::vector<PassTimeline> overlapped_timelines(const PoolPassTimes& pass, double loss) {
  return PassClock(pass, loss).run();
}

double overlapped_seconds(const ChunkedPassTimes& pass, double loss) {
  return overlapped_timelines({{pass}, {}}, loss).front().end_s();
}

double sequential_seconds(const ChunkedPassTimes& pass) {
  return pass.compute_s() + std::accumulate(pass.exchange_s.begin(), pass.exchange_s.end(), 0.0);
}

}  // namespace libra
