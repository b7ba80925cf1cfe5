#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "libra/base/index.h"
#include "libra/plan/plan_checks.h"
#include "libra/plan/pool_limits.h"

namespace libra {
namespace {

class TileChecker {
 public:
  TileChecker(const PoolPlan& plan, const TokenHomes& homes, Violations& violations)
      : plan_(plan), homes_(homes), violations_(violations) {}

  void run() {
    const Tiling& tiling = plan_.tiling;
    if (tiling.head_shards != plan_.options.head_shards || tiling.tp != plan_.options.tp ||
        tiling.shards_per_home != plan_.options.head_shards / plan_.options.tp) {
      violate("the tiling was made for other head shards");
    } else if (pieces_exist()) {
      check_coverage();
      check_costs();
      for (std::size_t block = 0; block < tiling.blocks.size(); ++block) check_block(block);
    }
  }

 private:
  void violate(std::string detail) { violations_.push_back({"tiles", std::move(detail)}); }

  bool pieces_exist() {
    const auto samples = static_cast<std::int32_t>(plan_.layout.samples.size());
    for (const Piece& piece : plan_.tiling.pieces) {
      if (piece.sample >= 0 && piece.sample < samples && !piece.queries.empty() &&
          piece.queries.begin >= 0 &&
          piece.queries.end <= plan_.layout.samples[at(piece.sample)].tokens)
        continue;
      violate(fmt::format("sample {} has no queries [{}, {})", piece.sample, piece.queries.begin,
                          piece.queries.end));
      return false;
    }
    return true;
  }

  // Pieces in (sample, token) order must run through every sample without gap or overlap.
  void check_coverage() {
    std::vector<Piece> pieces = plan_.tiling.pieces;
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
      return std::tie(a.sample, a.queries.begin) < std::tie(b.sample, b.queries.begin);
    });
    std::size_t next = 0;
    for (std::size_t sample = 0; sample < plan_.layout.samples.size(); ++sample) {
      std::int64_t token = 0;
      while (next < pieces.size() && at(pieces[next].sample) == sample &&
             pieces[next].queries.begin == token) {
        token = pieces[next++].queries.end;
      }
      if (token != plan_.layout.samples[sample].tokens) {
        violate(fmt::format("token {} of sample {} is not computed exactly once", token, sample));
        return;
      }
    }
    if (next != pieces.size())
      violate(fmt::format("a piece of sample {} is one too many", pieces[next].sample));
  }

  void check_costs() {
    std::int64_t left = kMaxTotalCost / plan_.options.head_shards;
    for (const Block& block : plan_.tiling.blocks) {
      if (block.cost < 0 || block.cost > left) {
        violate(fmt::format("a block costs {}", block.cost));
        return;
      }
      left -= block.cost;
    }
  }

  void check_block(std::size_t index) {
    const Block& block = plan_.tiling.blocks[index];
    const auto pieces = static_cast<std::int32_t>(plan_.tiling.pieces.size());
    const std::int32_t expected_first = index == 0 ? 0 : plan_.tiling.blocks[index - 1].end_piece;
    const bool last = index + 1 == plan_.tiling.blocks.size();
    if (block.first_piece != expected_first || block.first_piece < 0 ||
        block.end_piece <= block.first_piece || block.end_piece > pieces ||
        (last && block.end_piece != pieces)) {
      violate(fmt::format("block {} has pieces [{}, {}) of {}", index, block.first_piece,
                          block.end_piece, pieces));
      return;
    }
    std::int64_t tokens = 0;
    for (const Piece& piece : plan_.tiling.pieces_of(block)) {
      tokens += piece.queries.size();
      check_piece_home(index, block, piece);
    }
    if (tokens != block.tokens || tokens > plan_.options.block_tokens) {
      violate(fmt::format("block {} says {} tokens and has {} of at most {}", index, block.tokens,
                          tokens, plan_.options.block_tokens));
    }
    if (violations_.empty()) check_rows(index, block);
  }

  void check_piece_home(std::size_t index, const Block& block, const Piece& piece) {
    const PoolSample& sample = plan_.layout.samples[at(piece.sample)];
    const TokenHomes::Place place = homes_.find(sample.replica, sample.begin + piece.queries.begin);
    if (place.part == block.part && place.row == piece.row && place.left >= piece.queries.size())
      return;
    violate(fmt::format("block {}: queries [{}, {}) of sample {} are not at row {} of part {}",
                        index, piece.queries.begin, piece.queries.end, piece.sample, piece.row,
                        block.part));
  }

  // The part and the rows that a block takes: [k * B, (k + 1) * B), or one of the equal stretches
  // into which these are cut.
  struct Place {
    std::int32_t part = -1;
    std::int64_t k = -1;
    std::int64_t stretch = -1;
    auto key() const { return std::tuple(part, k, stretch); }
  };

  // A block holds the pieces of one place in row order, and no other block has the same place.
  void check_rows(std::size_t index, const Block& block) {
    const auto pieces = plan_.tiling.pieces_of(block);
    const std::int64_t k = pieces.front().row / plan_.options.block_tokens;
    if (std::tie(block.part, k) != std::tie(last_.part, last_.k)) {
      stretch_rows_ = rows_of_stretches(index, k);
    }
    const auto place = [&](std::int64_t row) {
      const std::int64_t in_block = row % plan_.options.block_tokens;
      return Place{block.part, row / plan_.options.block_tokens, in_block / stretch_rows_};
    };
    const Place here = place(pieces.front().row);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const bool inside = place(pieces[i].row).key() == here.key() &&
                          place(pieces[i].row + pieces[i].queries.size() - 1).key() == here.key();
      if (!inside || (i > 0 && pieces[i].row <= pieces[i - 1].row)) {
        violate(fmt::format("block {}: its pieces are not the rows of one block in order", index));
        return;
      }
    }
    if (here.key() <= last_.key())
      violate(fmt::format("block {} does not come after block {} in its part", index, index - 1));
    last_ = here;
  }

  // B halved until no stretch of the B rows has more than the most pairs, or rows get few.
  std::int64_t rows_of_stretches(std::size_t index, std::int64_t k) const {
    constexpr std::int64_t kFewRows = 128;
    std::int64_t rows = plan_.options.block_tokens;
    if (plan_.options.max_tile_pairs == 0) return rows;
    const std::vector<Piece> pieces = pieces_of_rows(index, k);
    while (rows > kFewRows && most_pairs(pieces, rows) > plan_.options.max_tile_pairs) {
      rows = rows / 2 + rows % 2;
    }
    return rows;
  }

  // The pieces of the B rows that block `index` begins, as far as its part's blocks make sense.
  std::vector<Piece> pieces_of_rows(std::size_t index, std::int64_t k) const {
    const auto all = static_cast<std::int32_t>(plan_.tiling.pieces.size());
    std::vector<Piece> pieces;
    for (std::size_t i = index; i < plan_.tiling.blocks.size(); ++i) {
      const Block& block = plan_.tiling.blocks[i];
      const bool exists =
          block.first_piece >= 0 && block.first_piece < block.end_piece && block.end_piece <= all;
      if (!exists || block.part != plan_.tiling.blocks[index].part) break;
      const auto own = plan_.tiling.pieces_of(block);
      if (own.front().row / plan_.options.block_tokens != k) break;
      pieces.insert(pieces.end(), own.begin(), own.end());
    }
    return pieces;
  }

  // Of the stretches of `rows` rows into which B rows are cut.
  std::int64_t most_pairs(const std::vector<Piece>& pieces, std::int64_t rows) const {
    std::map<std::int64_t, std::int64_t> pairs;  // by stretch
    for (const Piece& piece : pieces) {
      const std::int64_t first = piece.row % plan_.options.block_tokens;
      for (std::int64_t done = 0; done < piece.queries.size();) {
        const std::int64_t stretch = (first + done) / rows;
        const std::int64_t end = std::min(piece.queries.size(), (stretch + 1) * rows - first);
        pairs[stretch] += query_key_pairs({piece.queries.begin + done, piece.queries.begin + end});
        done = end;
      }
    }
    std::int64_t most = 0;
    for (const auto& [stretch, sum] : pairs) most = std::max(most, sum);
    return most;
  }

  const PoolPlan& plan_;
  const TokenHomes& homes_;
  Violations& violations_;
  Place last_;  // of the block before
  std::int64_t stretch_rows_ = 1;
};

}  // namespace

void check_tiles(const PoolPlan& plan, const TokenHomes& homes, Violations& violations) {
  TileChecker(plan, homes, violations).run();
}

void check_placement(const PoolPlan& plan, Violations& violations) {
  const auto violate = [&violations](std::string detail) {
    violations.push_back({"placement", std::move(detail)});
  };
  const Placement& placement = plan.placement;
  if (placement.destination.size() != at(plan.tiling.tiles())) {
    violate(fmt::format("{} destinations for {} tiles", placement.destination.size(),
                        plan.tiling.tiles()));
    return;
  }
  std::vector<std::int64_t> load(at(plan.workers()), 0);
  for (std::int32_t tile = 0; tile < plan.tiling.tiles(); ++tile) {
    const std::int32_t worker = placement.destination[at(tile)];
    if (worker < 0 || worker >= plan.workers()) {
      violate(fmt::format("tile {} goes to worker {} of {}", tile, worker, plan.workers()));
      return;
    }
    load[at(worker)] += plan.tiling.block_of(tile).cost;
  }
  if (load != placement.load) violate("loads are not the sums of the tiles' costs");
  const Placement again =
      with_destinations(plan.options, plan.layout, plan.tiling, placement.destination);
  if (again.cap != placement.cap)
    violate(fmt::format("the cap is {}, tau makes it {}", placement.cap, again.cap));
}

}  // namespace libra
