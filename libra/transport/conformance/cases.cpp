#include "libra/transport/conformance/cases.h"

#include <utility>

namespace libra::conformance {

TransportOptions ConformanceCase::options() const {
  TransportOptions options;
  if (ends_in_failure()) options.deadline = deadline;
  return options;
}

std::vector<ConformanceCase> conformance_cases() {
  std::vector<ConformanceCase> all = data_cases();
  for (const auto& more : {stream_cases(), failure_cases()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

void run_worker(const ConformanceCase& test, std::unique_ptr<Transport> transport) {
  if (transport->workers() < test.min_workers) return;
  Worker worker{.transport = std::move(transport), .stream = {}};
  SCOPED_TRACE(testing::Message() << test.name << ", worker " << worker.id() << " of "
                                  << worker.count());
  test.run(worker);
}

std::string case_name(const testing::TestParamInfo<ConformanceCase>& info) {
  return info.param.name;
}

std::ostream& operator<<(std::ostream& out, const ConformanceCase& test) {
  return out << test.name;
}

}  // namespace libra::conformance
