// The options that a plan is made with, by name: one list for the binary form, the JSON form and
// the fingerprint.
#pragma once

namespace libra {

/// Calls visit(name, field) for every option but explicit_runs, in the order of the binary form.
/// `Options` is PlanOptions or const PlanOptions; fields are integers, bool and the enums of
/// plan_options.h.
template <typename Options, typename Visit>
void visit_options(Options& options, Visit&& visit) {
  visit("q_heads", options.shape.q_heads);
  visit("kv_heads", options.shape.kv_heads);
  visit("head_dim", options.shape.head_dim);
  visit("value_dim", options.shape.value_dim);
  visit("storage", options.storage);
  visit("cp", options.cp);
  visit("tp", options.tp);
  visit("home", options.home);
  visit("block_tokens", options.block_tokens);
  visit("head_shards", options.head_shards);
  visit("chunks", options.chunks);
  visit("placer", options.placer);
  visit("fetch", options.fetch);
  visit("tau_ppm", options.tau_ppm);
  visit("backward", options.backward);
  visit("return_lse", options.return_lse);
  visit("local_first", options.local_first);
  visit("max_tile_pairs", options.max_tile_pairs);
  visit("gpus_per_node", options.gpus_per_node);
  visit("inter_node_weight", options.inter_node_weight);
  visit("search_us", options.search_us);
  visit("node_fetch", options.node_fetch);
}

}  // namespace libra
