#include "libra/runtime/chunked_pass.h"

#include <fmt/format.h>

#include <exception>
#include <limits>
#include <utility>

#include "libra/base/index.h"
#include "libra/runtime/tensor_views.h"

namespace libra {

namespace {

constexpr std::int32_t kSlots = 2;  // of arenas, per tensor

}  // namespace

ChunkedPass::ChunkedPass(const PassArguments& arguments, Legs legs)
    : arguments_(arguments),
      legs_(std::move(legs)),
      chunk_tensors_(arguments.plan),
      arena_(arguments.context.transport.arena()),
      goes_ahead_(arguments.context.transport.posts_ahead()),
      dispatched_(at(options().chunks)),
      returned_(at(options().chunks)),
      arriving_(at(options().chunks)) {}

void ChunkedPass::run() {
  step_ = context().next_step++;
  try {
    enqueue();
  } catch (const std::exception& error) {
    abandon(error.what());
    throw;
  }
}

void ChunkedPass::enqueue() {
  if (goes_ahead_) {
    for (std::int32_t chunk = 0; chunk < options().chunks; ++chunk) {
      post_home(chunk);
      post_home_extra(chunk);
    }
  }
  begin();
  for (std::int32_t chunk = 0; chunk < kSlots; ++chunk) post_dispatch(chunk);
  compute_local();
  for (std::int32_t chunk = 0; chunk < options().chunks; ++chunk) run_chunk(chunk);
  finish();
  for (const Handle handle : lent_) wait(handle);
  for (const Handle handle : returned_) wait(handle);
  for (const Handle handle : arriving_) wait(handle);
  for (const TensorView& output : outputs()) attention().poison_on_failure(output, stream());
}

// Once the transport is aborted nothing comes in any more that could undo the NaN. The stream
// itself may be sound or may fail.
void ChunkedPass::abandon(const std::string& reason) {
  context().transport.abort(fmt::format("step {} broke off: {}", step_, reason));
  for (const TensorView& output : outputs()) {
    attention().fill(output, std::numeric_limits<double>::quiet_NaN(), stream());
    attention().poison_on_failure(output, stream());
  }
}

void ChunkedPass::run_chunk(std::int32_t chunk) {
  if (chunk > 0) post_dispatch(chunk + kSlots - 1);
  if (heads().first_of_kv_chunk(chunk)) copy_resident_keys(heads().kv_chunk_of(chunk));
  wait(dispatched_[at(chunk)]);
  if (chunk >= kSlots) wait(returned_[at(chunk - kSlots)]);
  compute_chunk(chunk);
  post_return(chunk);
  finish_chunk(chunk);
}

void ChunkedPass::post_home(std::int32_t chunk) {
  Exchange lent = exchange(legs_.dispatch, chunk);
  add_sends(lent, chunk);
  lent_.push_back(post(lent));
  Exchange results = exchange(legs_.back, chunk);
  add_results(results, chunk);
  arriving_[at(chunk)] = post(results);
}

void ChunkedPass::add_sends(Exchange& exchange, std::int32_t chunk) const {
  for (const Leg& leg : legs_.queries) routes().send_queries(exchange, leg.own, leg.region, chunk);
  if (!heads().first_of_kv_chunk(chunk)) return;
  for (const Leg& leg : legs_.keys) {
    routes().send_keys(exchange, leg.own, leg.region, heads().kv_chunk_of(chunk));
  }
}

void ChunkedPass::add_results(Exchange& exchange, std::int32_t chunk) const {
  for (const Leg& leg : legs_.results) {
    routes().return_receives(exchange, leg.own, leg.region, chunk);
  }
}

void ChunkedPass::post_dispatch(std::int32_t chunk) {
  if (chunk >= options().chunks) return;
  Exchange dispatch = exchange(legs_.dispatch, chunk);
  if (!goes_ahead_) add_sends(dispatch, chunk);
  for (const Leg& leg : legs_.queries) {
    routes().receive_queries(dispatch, leg.region, chunk, arena_);
  }
  if (heads().first_of_kv_chunk(chunk)) {
    for (const Leg& leg : legs_.keys) {
      routes().receive_keys(dispatch, leg.region, heads().kv_chunk_of(chunk), arena_);
    }
  }
  dispatched_[at(chunk)] = post(dispatch);
}

// Keys of a fetched group that this worker holds itself go between those that are fetched.
void ChunkedPass::copy_resident_keys(std::int32_t kv_chunk) {
  if (program().kv_copies.empty() || legs_.keys.empty()) return;
  const EventLog::Span span = context().log.span(span_name("own keys"), kv_chunk, stream());
  for (const RowMove& move : program().kv_copies) {
    const std::int32_t head = routes().own_kv_head(move.shard, kv_chunk);
    for (const Leg& leg : legs_.keys) {
      attention().copy(
          as_rows(sub_tensor(leg.own, move.from_row, move.rows, head, heads().kv_chunk_heads)),
          region_rows(arena_, memory().arena.*leg.region, kv_chunk, move.to_row, move.rows),
          stream());
    }
  }
}

// Two exchanges of one tag: the slot is free once this worker's sends are done, whenever its own
// results come.
void ChunkedPass::post_return(std::int32_t chunk) {
  Exchange out = exchange(legs_.back, chunk);
  for (const Leg& leg : legs_.results) routes().return_sends(out, leg.region, chunk, arena_);
  out.more = !goes_ahead_;
  returned_[at(chunk)] = post(out);
  if (goes_ahead_) return;
  Exchange results = exchange(legs_.back, chunk);
  add_results(results, chunk);
  arriving_[at(chunk)] = post(results);
}

std::string ChunkedPass::span_name(const char* what) const {
  return fmt::format("{} {}", legs_.back == Phase::kForwardReturn ? "forward" : "backward", what);
}

}  // namespace libra
