// How long transfers take on links that they share.
//
// Every GPU has four ports: into and out of its node's NVLink domain, into and out of the network.
// All flows of a phase run at once; a port divides its rate among its flows in proportion to their
// bytes. A flow ends when the busier of its two ports has moved all it has to: no port is ever
// over its rate, and none waits for another.
//
//   FlowTable flows(4, cluster, 0);
//   flows.add(0, 1, 100, 0);                       // 100 query rows from worker 0 to worker 1
//   flows.seconds({.q_out = 8192});                // by worker
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "libra/cost/cluster.h"

namespace libra {

/// Bytes of one row in a phase: of queries, of keys, and of keys that a relay passes on; along the
/// flows and against them.
struct RowBytes {
  double q_out = 0;
  double kv_out = 0;
  double q_back = 0;
  double kv_back = 0;
  double relay_out = 0;
  double relay_back = 0;

  RowBytes& operator+=(const RowBytes& other) {
    q_out += other.q_out;
    kv_out += other.kv_out;
    q_back += other.q_back;
    kv_back += other.kv_back;
    relay_out += other.relay_out;
    relay_back += other.relay_back;
    return *this;
  }
};

/// Bytes by kind of link, all workers together.
struct LinkBytes {
  double nvlink = 0;
  double inter_node = 0;

  double total() const { return nvlink + inter_node; }
  LinkBytes& operator+=(const LinkBytes& other) {
    nvlink += other.nvlink;
    inter_node += other.inter_node;
    return *this;
  }
};

/// Something goes from one worker to another.
struct Sending {
  std::int32_t from = 0;
  std::int32_t to = 0;
  friend bool operator==(const Sending&, const Sending&) = default;
};

class FlowTable {
 public:
  /// Worker w is GPU first_gpu + w.
  FlowTable(std::int32_t workers, Cluster cluster, std::int64_t first_gpu)
      : workers_(workers), cluster_(std::move(cluster)), first_gpu_(first_gpu) {}

  /// Rows from one worker to another. Neighbours in the order of adding are joined.
  void add(std::int32_t from, std::int32_t to, std::int64_t q_rows, std::int64_t kv_rows,
           std::int64_t relay_rows = 0);

  /// Joins all flows between the same two workers. Call once, after the last add().
  void finish();

  /// By worker: until all that it sends and receives in one phase has arrived; 0 if nothing.
  /// O(flows + workers).
  std::vector<double> seconds(const RowBytes& row) const;

  /// The same for a phase whose flows begin when their senders are done with the one before, which
  /// took these seconds by worker; both together.
  std::vector<double> seconds_after(std::vector<double> before, const RowBytes& row) const;

  /// Those that take something out: `row`'s bytes back don't count.
  std::vector<Sending> outward(const RowBytes& row) const;

  LinkBytes bytes(const RowBytes& row) const;

  /// What the busiest port needs for these bytes: no pass that moves them can be shorter.
  double busiest_port_seconds(const RowBytes& row) const;

 private:
  struct FlowRows {
    std::int32_t from = 0;
    std::int32_t to = 0;
    bool inter_node = false;
    double q_rows = 0;
    double kv_rows = 0;
    double relay_rows = 0;

    double out(const RowBytes& row) const {
      return q_rows * row.q_out + kv_rows * row.kv_out + relay_rows * row.relay_out;
    }
    double back(const RowBytes& row) const {
      return q_rows * row.q_back + kv_rows * row.kv_back + relay_rows * row.relay_back;
    }
  };
  /// Seconds that each port of a worker needs for its bytes.
  struct Ports {
    double out[2] = {0, 0};  // NVLink, network
    double in[2] = {0, 0};
  };

  std::vector<Ports> ports(const RowBytes& row) const;

  std::int32_t workers_;
  Cluster cluster_;
  std::int64_t first_gpu_;
  std::vector<FlowRows> flows_;
};

}  // namespace libra
