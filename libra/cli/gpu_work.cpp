#include "libra/cli/gpu_work.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <memory>
#include <thread>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/cli/gpu_attention_timer.h"
#include "libra/cli/gpu_device.h"
#include "libra/cuda/cuda_error.h"
#include "libra/cuda/cuda_memory.h"
#include "libra/cuda/cuda_stream.h"
#include "libra/cuda/device.h"
#include "libra/sim/spread.h"
#include "libra/transport/peer/peer_group.h"
#ifdef LIBRA_HAS_NCCL
#include "libra/transport/nccl/nccl_transport.h"
#endif

namespace libra::cli {
namespace {

constexpr std::int64_t kTimerRows = std::int64_t{1} << 18;
constexpr double kPs = 1e12;

void require_devices(std::int32_t count, const char* option) {
  if (device_count() >= count) return;
  throw ConfigError(fmt::format("{} needs {} GPU{}, and this process can use {}", option, count,
                                count > 1 ? "s" : "", device_count()));
}

using Seconds = double (GpuAttentionTimer::*)(const TimedCall&, int);

// What an entry costs besides its work: the slope over the number of tiny entries.
double entry_seconds(GpuAttentionTimer& timer, Seconds seconds, int repetitions) {
  constexpr std::int64_t kFew = 1024, kMany = 4096;
  const auto of = [&](std::int64_t count) {
    return (timer.*seconds)(repeated_call({0, 16}, 4, count, timer.rows()), repetitions);
  };
  return std::max(0.0, (of(kMany) - of(kFew)) / static_cast<double>(kMany - kFew));
}

// A call's rate, less its constants.
double gflops(double flops, double seconds, const TimedCall& call, double entry, double launch) {
  const double constants = launch + entry * static_cast<double>(call.forward.size());
  return flops / std::max(seconds - constants, 0.1 * seconds) * 1e-9;
}

struct Calibrator {
  const CalibrationOptions& options;
  const OnStep& on_step;
  GpuAttentionTimer& timer;
  double launch = 0;
  bool keys_shared = false;  // by the entries of a call
  std::int64_t done = 0;

  std::int64_t steps() const {
    return 2 * std::ssize(options.queries) * std::ssize(options.keys) * std::ssize(options.heads);
  }

  DeviceProfileData::Pass measure(Seconds seconds, double (TimedCall::*flops)() const,
                                  bool keys_may_be_shared) {
    keys_shared = keys_may_be_shared;
    DeviceProfileData::Pass pass;
    const double entry = entry_seconds(timer, seconds, options.repetitions);
    pass.entry_ps = std::llround(entry * kPs);
    pass.rates = {options.queries, options.keys, options.heads, {}};
    for (const std::int64_t heads : options.heads) {
      std::vector<std::vector<std::int64_t>> plane;
      for (const std::int64_t queries : options.queries) {
        plane.push_back(row(seconds, flops, entry, queries, static_cast<std::int32_t>(heads)));
      }
      append(plane, pass.rates.gflops);
    }
    return pass;
  }

  // By keys; 0 where there are more queries than keys.
  std::vector<std::int64_t> row(Seconds seconds, double (TimedCall::*flops)() const, double entry,
                                std::int64_t queries, std::int32_t heads) {
    std::vector<std::int64_t> rates;
    for (const std::int64_t keys : options.keys) {
      std::int64_t rate = 0;
      if (queries <= keys) {
        const TimedCall call =
            saturating_call({keys - queries, keys}, heads, timer.rows(), keys_shared);
        rate = std::max<std::int64_t>(
            1, std::llround(gflops((call.*flops)(), (timer.*seconds)(call, options.repetitions),
                                   call, entry, launch)));
      }
      rates.push_back(rate);
      on_step(++done, steps());
    }
    return rates;
  }

  // Nodes that cannot occur get the rate of the largest number of queries that can.
  static void append(std::vector<std::vector<std::int64_t>>& plane,
                     std::vector<std::int64_t>& gflops) {
    for (std::size_t q = 0; q < plane.size(); ++q) {
      for (std::size_t k = 0; k < plane[q].size(); ++k) {
        if (plane[q][k] == 0) plane[q][k] = q > 0 ? plane[q - 1][k] : plane[q].back();
        gflops.push_back(plane[q][k]);
      }
    }
  }
};

// Both directions at once, GB/s per direction.
double exchange_rate(std::vector<std::unique_ptr<Transport>> endpoints, std::int64_t bytes) {
  constexpr std::int32_t kWarmUp = 3, kRounds = 10;
  std::vector<double> seconds(endpoints.size());
  std::barrier<> together(std::ssize(endpoints));
  std::vector<std::jthread> threads;
  threads.reserve(endpoints.size());
  for (std::size_t w = 0; w < endpoints.size(); ++w) {
    threads.emplace_back([&, w] {
      const auto device = static_cast<std::int32_t>(w);
      const DeviceGuard guard(device);
      Transport& transport = *endpoints[w];
      CudaStream stream(device);
      transport.reserve_arena(bytes);
      const auto own = allocate_device(device, bytes);
      const std::int32_t peer = 1 - device;
      std::vector<double> times;
      for (std::int32_t round = 0; round < kWarmUp + kRounds; ++round) {
        together.arrive_and_wait();
        Timestamp begin, end;
        stream.mark(&begin);
        const Handle handle = transport.post({{round, Phase::kForwardDispatch, 0, 0},
                                              {{peer, {own.get(), 1, bytes, bytes}, 0}},
                                              {{peer, {transport.arena(), 1, bytes, bytes}}}},
                                             stream);
        transport.wait(handle, stream);
        stream.mark(&end);
        stream.synchronize();
        if (round >= kWarmUp) {
          times.push_back(static_cast<double>(end.wall_ns - begin.wall_ns) * 1e-9);
        }
      }
      seconds[w] = median(times);
      together.arrive_and_wait();
    });
  }
  threads.clear();
  return static_cast<double>(bytes) / *std::max_element(seconds.begin(), seconds.end()) * 1e-9;
}

double nccl_rate(std::int64_t bytes) {
#ifdef LIBRA_HAS_NCCL
  return exchange_rate(make_nccl_group({0, 1}, {}), bytes);
#else
  return 0 * static_cast<double>(bytes);
#endif
}

}  // namespace

DeviceProfileData measure_profile(const CalibrationOptions& options, const OnStep& on_step) {
  require_device(options.device);
  GpuAttentionTimer timer(options.device, kTimerRows);
  Calibrator calibrator{options, on_step, timer};
  calibrator.launch = timer.forward_seconds(repeated_call({0, 16}, 4, 1, timer.rows()), 21);
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, options.device), "cudaGetDeviceProperties");
  DeviceProfileData data;
  data.name = device_name(options.device);
  data.source = "measured by libra calibrate: cuDNN, bf16, head dimension 128";
  data.launch_ps = std::llround(calibrator.launch * kPs);
  data.multiprocessors = properties.multiProcessorCount;
  data.add_mb_per_s = std::llround(timer.added_bytes_per_second(options.repetitions) * 1e-6);
  data.forward =
      calibrator.measure(&GpuAttentionTimer::forward_seconds, &TimedCall::forward_flops, true);
  data.backward =
      calibrator.measure(&GpuAttentionTimer::backward_seconds, &TimedCall::backward_flops, false);
  return data;
}

std::vector<BlockRate> measure_block_rates(std::int32_t device,
                                           const std::vector<std::int64_t>& blocks,
                                           const std::vector<std::int32_t>& heads,
                                           const OnStep& on_step) {
  require_device(device);
  GpuAttentionTimer timer(device, kTimerRows);
  std::vector<BlockRate> rates;
  for (const std::int64_t block : blocks) {
    for (const std::int32_t count : heads) {
      const TimedCall call = saturating_call({0, block}, count, timer.rows(), false);
      rates.push_back({block, count, call.forward_flops() / timer.forward_seconds(call, 5) * 1e-12,
                       call.backward_flops() / timer.backward_seconds(call, 5) * 1e-12});
      on_step(std::ssize(rates), std::ssize(blocks) * std::ssize(heads));
    }
  }
  return rates;
}

std::vector<std::vector<double>> measure_equal_work(int steps, const OnStep& on_step) {
  require_devices(1, "--equal-work-steps");
  const std::int32_t devices = device_count();
  std::vector<std::vector<double>> seconds(at(steps), std::vector<double>(at(devices)));
  std::barrier<> together(devices);
  std::vector<std::jthread> threads;
  threads.reserve(at(devices));
  for (std::int32_t device = 0; device < devices; ++device) {
    threads.emplace_back([&, device] {
      GpuAttentionTimer timer(device, kTimerRows);
      const TimedCall call = repeated_call({0, 32768}, 32, 4, timer.rows());
      timer.forward_seconds(call, 1);
      for (int step = 0; step < steps; ++step) {
        together.arrive_and_wait();
        seconds[at(step)][at(device)] = timer.forward_seconds(call, 1);
        if (device == 0) on_step(step + 1, steps);
      }
    });
  }
  threads.clear();
  return seconds;
}

std::vector<CopyRate> measure_copies(const std::vector<std::int64_t>& sizes,
                                     const OnStep& on_step) {
  require_devices(2, "--copies");
  std::vector<CopyRate> rates;
  for (const std::int64_t bytes : sizes) {
    rates.push_back({bytes, exchange_rate(make_peer_group({0, 1}, {}), bytes), nccl_rate(bytes)});
    on_step(std::ssize(rates), std::ssize(sizes));
  }
  return rates;
}

}  // namespace libra::cli
