#include <unistd.h>

#include <iostream>

#include "libra/cli/cli.h"

int main(int argc, char** argv) {
  return libra::cli::run_cli({argv + 1, argv + argc},
                             {std::cout, std::cerr, isatty(STDERR_FILENO) == 1});
}
