#include "libra/runtime/profiler_range.h"

#ifdef LIBRA_HAS_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace libra {

#ifdef LIBRA_HAS_NVTX
ProfilerRange::ProfilerRange(const char* name) { nvtxRangePushA(name); }
ProfilerRange::~ProfilerRange() { nvtxRangePop(); }
#else
ProfilerRange::ProfilerRange(const char* /*name*/) {}
ProfilerRange::~ProfilerRange() = default;
#endif

}  // namespace libra
