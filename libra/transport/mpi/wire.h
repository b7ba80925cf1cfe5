// How exchanges look to MPI: tags as integers, strided views as derived datatypes, so that MPI
// packs them and we do not.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "libra/base/strided_view.h"
#include "libra/transport/transport.h"

namespace libra::mpi {

/// 27 bits: step modulo 2^12 | phase (3) | chunk (8) | round (4). Distinct for all tags that Tag
/// tells apart in flight. Requires what check_exchange() asks.
std::int32_t wire_tag(const Tag& tag);
constexpr std::int32_t kLargestWireTag = (1 << 27) - 1;

/// Throws ConfigError if the view has more than 2^31 - 1 rows or bytes in a row, which is all that
/// MPI's counts can say.
void check_counts(const StridedView& view);

/// A view as MPI takes it; freed with it, which MPI allows while requests still use it.
class WireType {
 public:
  /// Requires check_counts. Throws TransportError if MPI refuses.
  explicit WireType(const StridedView& view);
  ~WireType();
  WireType(const WireType&) = delete;
  WireType& operator=(const WireType&) = delete;

  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  int count_ = 0;
  MPI_Datatype type_ = MPI_BYTE;
};

}  // namespace libra::mpi
