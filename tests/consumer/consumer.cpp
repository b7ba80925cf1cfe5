// Uses the installed package: a header, a generated header and a compiled function of it.
//
//   consumer 0.1.0      prints the version; exit code 1 if it is not the one given
#include <cstdio>
#include <string>

#include "libra/base/units.h"
#include "libra/base/version.h"

int main(int argc, char** argv) {
  const std::string expected = argc > 1 ? argv[1] : "";
  std::printf("libra %s, 256K is %lld\n", libra::kVersion,
              static_cast<long long>(libra::parse_size("256K")));
  return expected == libra::kVersion ? 0 : 1;
}
