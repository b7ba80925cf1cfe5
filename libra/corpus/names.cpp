// The words for what users choose about a corpus.
#include "libra/base/names.h"

#include "libra/corpus/corpus.h"
#include "libra/corpus/packing.h"
#include "libra/corpus/window.h"

namespace libra {
namespace {

constexpr Names<Packing, 3> kPackings = {{{Packing::kFirstFit, "first-fit"},
                                          {Packing::kBestFitDecreasing, "best-fit-decreasing"},
                                          {Packing::kConcat, "concat"}}};
constexpr Names<Oversize, 4> kOversizes = {{{Oversize::kError, "error"},
                                            {Oversize::kTruncate, "truncate"},
                                            {Oversize::kSplit, "split"},
                                            {Oversize::kDrop, "drop"}}};
constexpr Names<ReadOrder, 3> kOrders = {{{ReadOrder::kShuffled, "shuffled"},
                                          {ReadOrder::kFileOrderOnce, "file-order-once"},
                                          {ReadOrder::kFileOrder, "file-order"}}};
constexpr Names<LastWindow, 2> kLastWindows = {
    {{LastWindow::kCarryOver, "carry"}, {LastWindow::kDrop, "drop"}}};
constexpr Names<IdxUnit, 2> kIdxUnits = {
    {{IdxUnit::kDocuments, "documents"}, {IdxUnit::kSequences, "sequences"}}};

}  // namespace

std::string_view packing_name(Packing packing) { return name_of(kPackings, packing); }
std::string_view oversize_name(Oversize oversize) { return name_of(kOversizes, oversize); }
std::string_view order_name(ReadOrder order) { return name_of(kOrders, order); }

Packing parse_packing(std::string_view name) { return parse_name(kPackings, "packing", name); }
Oversize parse_oversize(std::string_view name) {
  return parse_name(kOversizes, "policy for documents that are too long", name);
}
ReadOrder parse_order(std::string_view name) { return parse_name(kOrders, "reading order", name); }
LastWindow parse_last_window(std::string_view name) {
  return parse_name(kLastWindows, "policy for the last window", name);
}
IdxUnit parse_idx_unit(std::string_view name) {
  return parse_name(kIdxUnits, "unit of an .idx file", name);
}

}  // namespace libra
