#include "libra/sim/overlap.h"

#include <algorithm>
#include <numeric>

#include "libra/base/index.h"

namespace libra {
namespace {

constexpr std::size_t kSlots = 2;  // chunks that fit into a guest's memory

class PassClock {
 public:
  PassClock(const PoolPassTimes& pass, double loss)
      : pass_(pass),
        loss_(loss),
        chunks_(pass.workers.front().exchange_s.size() - 2),
        timelines_(pass.workers.size()) {}

  std::vector<PassTimeline> run() {
    for (std::size_t w = 0; w < timelines_.size(); ++w) {
      compute(w, 0, pass_.workers[w].local_s, 0);
    }
    for (std::size_t phase = 0; phase < chunks_ + kSlots; ++phase) {
      exchange(phase);
      if (phase < chunks_) compute_chunk(phase);
    }
    for (std::size_t w = 0; w < timelines_.size(); ++w) {
      const double begin =
          std::max(timelines_[w].compute.back().end_s, timelines_[w].exchange.back().end_s);
      compute(w, begin, pass_.workers[w].last_s, chunks_ + kSlots);
    }
    return std::move(timelines_);
  }

 private:
  // The spans of computation are the local work and then the chunks.
  double chunk_end(std::size_t worker, std::size_t chunk) const {
    return timelines_[worker].compute[chunk + 1].end_s;
  }

  double traffic(std::size_t worker, std::size_t phase) const {
    const std::vector<double>& seconds = pass_.workers[worker].exchange_s;
    return phase < seconds.size() ? seconds[phase] : 0;
  }

  // `beside`: the phase under way.
  void compute(std::size_t worker, double begin, double seconds, std::size_t beside) {
    const double slowed = seconds + loss_ * std::min(seconds, traffic(worker, beside));
    timelines_[worker].compute.push_back({begin, begin + slowed});
  }

  void compute_chunk(std::size_t chunk) {
    for (std::size_t w = 0; w < timelines_.size(); ++w) {
      const double begin =
          std::max(timelines_[w].compute.back().end_s, timelines_[w].exchange[chunk].end_s);
      compute(w, begin, pass_.workers[w].chunk_compute_s, chunk + 1);
    }
  }

  void exchange(std::size_t phase) {
    const std::vector<double> leaves = departures(phase);
    std::vector<double> last = leaves;  // of a worker and its homes
    for (const Lending& lending : pass_.lendings) {
      if (phase >= chunks_) break;  // nothing goes out
      last[at(lending.guest)] = std::max(last[at(lending.guest)], leaves[at(lending.home)]);
    }
    for (std::size_t w = 0; w < timelines_.size(); ++w) {
      timelines_[w].exchange.push_back({leaves[w], last[w] + traffic(w, phase)});
    }
  }

  // When each worker's links are free for the phase, and there is something to send.
  std::vector<double> departures(std::size_t phase) const {
    std::vector<double> leaves(timelines_.size(), 0);
    for (std::size_t w = 0; w < leaves.size() && phase > 0; ++w) {
      leaves[w] = timelines_[w].exchange[phase - 1].begin_s + traffic(w, phase - 1);
      const bool waits_for_itself = phase >= chunks_ || !pass_.posts_ahead;
      if (phase >= kSlots && waits_for_itself) {
        leaves[w] = std::max(leaves[w], chunk_end(w, phase - kSlots));
      }
    }
    if (phase >= kSlots && phase < chunks_) wait_for_partners(phase - kSlots, leaves);
    return leaves;
  }

  void wait_for_partners(std::size_t chunk, std::vector<double>& leaves) const {
    for (const Lending& lending : pass_.lendings) {
      double& home = leaves[at(lending.home)];
      double& guest = leaves[at(lending.guest)];
      home = std::max(home, chunk_end(at(lending.guest), chunk));
      if (!pass_.posts_ahead) guest = std::max(guest, chunk_end(at(lending.home), chunk));
    }
  }

  const PoolPassTimes& pass_;
  double loss_;
  std::size_t chunks_;
  std::vector<PassTimeline> timelines_;
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
