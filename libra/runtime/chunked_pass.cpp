#include "libra/runtime/chunked_pass.h"

#include <fmt/format.h>

#include <exception>
#include <limits>
#include <utility>

#include "libra/base/index.h"
#include "libra/runtime/tensor_views.h"

namespace libra {

namespace {

constexpr std::int32_t kSlots = 2;     // of arenas, per tensor
constexpr std::int32_t kKeySlots = 3;  // of keys that are passed on
constexpr Handle kNothing{-2};         // no exchange is called that

}  // namespace

ChunkedPass::ChunkedPass(const PassArguments& arguments, Legs legs)
    : arguments_(arguments),
      legs_(std::move(legs)),
      chunk_tensors_(arguments.plan),
      arena_(arguments.context.transport.arena()),
      goes_ahead_(arguments.context.transport.posts_ahead()),
      dispatched_(at(options().chunks)),
      returned_(at(options().chunks)),
      arriving_(at(options().chunks)),
      keys_(at(heads().kv_chunks)),
      passed_on_(at(heads().kv_chunks)),
      passed_(at(heads().kv_chunks)) {}

void ChunkedPass::run() {
  step_ = context().next_step++;
  try {
    enqueue();
  } catch (const std::exception& error) {
    abandon(error.what());
    throw;
  }
}

// What posts ahead also waits for nothing but transfers, so that an exchange without any is none.
Handle ChunkedPass::post(const Exchange& exchange, Stream& used) {
  if (goes_ahead_ && exchange.sends.empty() && exchange.receives.empty()) return kNothing;
  return context().transport.post(exchange, used);
}

void ChunkedPass::wait(Handle handle, Stream& used) {
  if (handle.id != kNothing.id) context().transport.wait(handle, used);
}

void ChunkedPass::enqueue() {
  context().transport.poll();  // a worker without exchanges must hear of failures, too
  if (goes_ahead_) post_home();
  begin();
  post_first_dispatches();
  if (relays_keys()) pass_on_first_keys();
  compute_local();
  for (std::int32_t chunk = 0; chunk < options().chunks; ++chunk) run_chunk(chunk);
  finish();
  for (const Handle handle : lent_) wait(handle);
  for (const Handle handle : returned_) wait(handle);
  for (const Handle handle : arriving_) wait(handle);
  if (relays_keys()) {
    for (const Handle handle : passed_on_) wait(handle);
  }
  for (const TensorView& output : outputs()) attention().poison_on_failure(output, stream());
}

// Once the transport is aborted nothing comes in any more that could undo the NaN. The stream
// itself may be sound or may fail.
void ChunkedPass::abandon(const std::string& reason) {
  const bool forward = legs_.dispatch == Phase::kForwardDispatch;
  context().transport.abort(fmt::format("step {}, {} pass, broke off: {}", step_,
                                        forward ? "forward" : "backward", reason));
  for (const TensorView& output : outputs()) {
    attention().fill(output, std::numeric_limits<double>::quiet_NaN(), stream());
    attention().poison_on_failure(output, stream());
  }
}

void ChunkedPass::run_chunk(std::int32_t chunk) {
  const bool new_keys = heads().first_of_kv_chunk(chunk);
  const std::int32_t kv_chunk = heads().kv_chunk_of(chunk);
  if (chunk > 0 && new_keys && relays_keys()) post_keys(kv_chunk + kKeySlots - 1);
  if (chunk > 0) post_dispatch(chunk + kSlots - 1);
  if (new_keys && relays_keys()) pass_on_next_keys(kv_chunk);
  if (new_keys) copy_resident_keys(kv_chunk);
  wait_for_inputs(chunk);
  if (chunk >= kSlots) wait(returned_[at(chunk - kSlots)]);
  compute_chunk(chunk);
  post_return(chunk);
  finish_chunk(chunk);
}

void ChunkedPass::wait_for_inputs(std::int32_t chunk) {
  wait(dispatched_[at(chunk)]);
  if (!relays_keys() || !heads().first_of_kv_chunk(chunk)) return;
  wait(keys_[at(heads().kv_chunk_of(chunk))]);
  wait(passed_[at(heads().kv_chunk_of(chunk))]);
}

void ChunkedPass::post_home() {
  if (relays_keys()) lend_in_rounds();
  for (std::int32_t chunk = 0; chunk < options().chunks; ++chunk) {
    if (!relays_keys()) lend(chunk);
    Exchange results = exchange(legs_.back, chunk);
    add_results(results, chunk);
    arriving_[at(chunk)] = post(results);
    post_home_extra(chunk);
  }
}

// In the order in which guests are ready to receive.
void ChunkedPass::lend_in_rounds() {
  for (std::int32_t kv_chunk = 0; kv_chunk < kKeySlots; ++kv_chunk) lend_keys(kv_chunk);
  for (std::int32_t chunk = 0; chunk < kSlots; ++chunk) lend(chunk);
  for (std::int32_t chunk = 1; chunk < options().chunks; ++chunk) {
    if (heads().first_of_kv_chunk(chunk)) lend_keys(heads().kv_chunk_of(chunk) + kKeySlots - 1);
    lend(chunk + kSlots - 1);
  }
}

void ChunkedPass::lend(std::int32_t chunk) {
  if (chunk >= options().chunks) return;
  Exchange lent = exchange(legs_.dispatch, chunk);
  add_sends(lent, chunk);
  lent_.push_back(post(lent));
}

void ChunkedPass::lend_keys(std::int32_t kv_chunk) {
  if (kv_chunk >= heads().kv_chunks) return;
  Exchange lent = key_exchange(kv_chunk, kKeyRound);
  add_key_sends(lent, kv_chunk);
  lent_.push_back(post(lent));
}

Exchange ChunkedPass::key_exchange(std::int32_t kv_chunk, std::int32_t round) const {
  return exchange(legs_.dispatch, kv_chunk * heads().chunks_per_kv_chunk, round);
}

void ChunkedPass::add_sends(Exchange& exchange, std::int32_t chunk) const {
  for (const Leg& leg : legs_.queries) routes().send_queries(exchange, leg.own, leg.region, chunk);
  if (relays_keys() || !heads().first_of_kv_chunk(chunk)) return;
  add_key_sends(exchange, heads().kv_chunk_of(chunk));
}

void ChunkedPass::add_key_sends(Exchange& exchange, std::int32_t kv_chunk) const {
  for (const Leg& leg : legs_.keys) routes().send_keys(exchange, leg.own, leg.region, kv_chunk);
}

void ChunkedPass::add_key_receives(Exchange& exchange, std::int32_t kv_chunk) const {
  for (const Leg& leg : legs_.keys) routes().receive_keys(exchange, leg.region, kv_chunk, arena_);
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
  if (!relays_keys() && heads().first_of_kv_chunk(chunk)) {
    add_key_receives(dispatch, heads().kv_chunk_of(chunk));
  }
  dispatched_[at(chunk)] = post(dispatch);
}

void ChunkedPass::post_first_dispatches() {
  if (relays_keys()) {
    for (std::int32_t kv_chunk = 0; kv_chunk < kKeySlots; ++kv_chunk) post_keys(kv_chunk);
  }
  for (std::int32_t chunk = 0; chunk < kSlots; ++chunk) post_dispatch(chunk);
}

// The slot is that of the KV chunk before the last two, which must have been passed on.
void ChunkedPass::post_keys(std::int32_t kv_chunk) {
  if (kv_chunk >= heads().kv_chunks) return;
  if (kv_chunk >= kKeySlots) wait(passed_on_[at(kv_chunk - kKeySlots)]);
  Exchange keys = key_exchange(kv_chunk, kKeyRound);
  if (!goes_ahead_) add_key_sends(keys, kv_chunk);
  add_key_receives(keys, kv_chunk);
  keys_[at(kv_chunk)] = post(keys);
  if (relays_beside()) receive_passed(kv_chunk);
}

void ChunkedPass::pass_on_first_keys() {
  if (!relays_beside()) return pass_on_in_order(0);
  for (std::int32_t kv_chunk = 0; kv_chunk < kKeySlots; ++kv_chunk) pass_on(kv_chunk);
}

// Before `kv_chunk` is computed: the next one in order, or those that were dispatched last.
void ChunkedPass::pass_on_next_keys(std::int32_t kv_chunk) {
  if (!relays_beside()) return pass_on_in_order(kv_chunk + 1);
  if (kv_chunk > 0) pass_on(kv_chunk + kKeySlots - 1);
}

void ChunkedPass::pass_on_in_order(std::int32_t kv_chunk) {
  pass_on(kv_chunk);
  receive_passed(kv_chunk);
}

// Two exchanges of one tag with receive_passed(): what a worker receives it needs before what it
// passes on has to have left.
void ChunkedPass::pass_on(std::int32_t kv_chunk) {
  if (kv_chunk >= heads().kv_chunks) return;
  Stream& used = relays_beside() ? *context().relays : stream();
  if (!program().relay_out.empty()) wait(keys_[at(kv_chunk)], used);
  Exchange out = key_exchange(kv_chunk, kRelayRound);
  for (const Leg& leg : legs_.keys) routes().pass_on_keys(out, leg.region, kv_chunk, arena_);
  out.more = !goes_ahead_;
  passed_on_[at(kv_chunk)] = post(out, used);
}

void ChunkedPass::receive_passed(std::int32_t kv_chunk) {
  if (kv_chunk >= heads().kv_chunks) return;
  Exchange in = key_exchange(kv_chunk, kRelayRound);
  for (const Leg& leg : legs_.keys) {
    routes().receive_passed_keys(in, leg.region, kv_chunk, arena_);
  }
  passed_[at(kv_chunk)] = post(in);
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
