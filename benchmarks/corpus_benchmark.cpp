// Reading and packing ten million document lengths, and the first window of such a corpus.
//
//   corpus_benchmark --benchmark_repetitions=5 --benchmark_format=json
//
// Files are written to a temporary directory first; that is not measured.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "libra/corpus/corpus.h"
#include "libra/corpus/idx_reader.h"
#include "libra/corpus/npy_reader.h"
#include "libra/corpus/packing.h"
#include "libra/corpus/statistics.h"
#include "libra/corpus/synthetic.h"
#include "libra/corpus/window.h"

namespace libra {
namespace {

constexpr std::int64_t kDocuments = 10'000'000;
constexpr std::int64_t kSequenceTokens = 262'144;

template <typename Number>
void write_number(std::ofstream& out, Number number) {
  out.write(reinterpret_cast<const char*>(&number), sizeof(Number));
}

// Ten million synthetic lengths as a NPY file and as a Megatron index.
class Files {
 public:
  Files() : lengths_(draw_lengths(synthetic_model("paper-256k"), kDocuments, 1)) {
    std::string pattern = (std::filesystem::temp_directory_path() / "libra-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    write_npy();
    write_idx();
  }
  ~Files() { std::filesystem::remove_all(directory_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  std::string npy() const { return directory_ + "/lengths.npy"; }
  std::string idx() const { return directory_ + "/lengths.idx"; }
  const std::vector<std::int64_t>& lengths() const { return lengths_; }

 private:
  void write_npy() const {
    std::ofstream out(npy(), std::ios::binary);
    const std::string header = "{'descr': '<u4', 'fortran_order': False, 'shape': (" +
                               std::to_string(kDocuments) + ",)}\n";
    out << kNpyMagic << '\1' << '\0';
    write_number(out, static_cast<std::uint16_t>(header.size()));
    out << header;
    for (const std::int64_t length : lengths_) {
      write_number(out, static_cast<std::uint32_t>(length));
    }
  }

  void write_idx() const {
    std::ofstream out(idx(), std::ios::binary);
    out << kIdxMagic;
    write_number(out, std::uint64_t{1});
    out << '\4';
    write_number(out, static_cast<std::uint64_t>(kDocuments));
    write_number(out, static_cast<std::uint64_t>(kDocuments + 1));
    for (const std::int64_t length : lengths_) write_number(out, static_cast<std::int32_t>(length));
    std::int64_t pointer = 0;
    for (const std::int64_t length : lengths_) {
      write_number(out, pointer);
      pointer += 4 * length;
    }
    for (std::int64_t document = 0; document <= kDocuments; ++document) write_number(out, document);
  }

  std::string directory_;
  std::vector<std::int64_t> lengths_;
};

const Files& files() {
  static const Files instance;
  return instance;
}

PackingOptions options_for(Packing packing) {
  PackingOptions options;
  options.tokens = kSequenceTokens;
  options.packing = packing;
  return options;
}

// Packs as a training run does, sequence by sequence; returns the number of samples.
std::int64_t pack_stream(const std::vector<std::int64_t>& lengths, Packing packing) {
  DocumentPacker packer(options_for(packing));
  std::int64_t document = 0;
  const auto take_ready = [&packer] {
    while (std::optional<Packed> sequence = packer.take()) benchmark::DoNotOptimize(sequence);
  };
  for (const std::int64_t tokens : lengths) {
    packer.add(document++, tokens);
    take_ready();
  }
  packer.finish();
  take_ready();
  return packer.report().samples;
}

void read(benchmark::State& state, const std::string& path) {
  for (auto _ : state) benchmark::DoNotOptimize(read_corpus(path));
}

void read_and_pack(benchmark::State& state, const std::string& path, Packing packing) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(pack_stream(read_corpus(path).lengths, packing));
  }
}

void pack_in_memory(benchmark::State& state, Packing packing) {
  for (auto _ : state) benchmark::DoNotOptimize(pack(files().lengths(), options_for(packing)));
}

void first_window(benchmark::State& state, const std::string& path) {
  for (auto _ : state) {
    const Corpus corpus = read_corpus(path);
    WindowOptions options;
    options.sequences = 128;
    options.packing = options_for(Packing::kFirstFit);
    benchmark::DoNotOptimize(WindowStream(corpus, options).next());
  }
}

void statistics(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(corpus_statistics(files().lengths()));
}

void register_all() {
  const auto add = [](const char* name, auto function, auto... arguments) {
    benchmark::RegisterBenchmark(name, function, arguments...)->Unit(benchmark::kMillisecond);
  };
  add("read/npy", read, files().npy());
  add("read/idx", read, files().idx());
  for (const Packing packing : {Packing::kFirstFit, Packing::kConcat}) {
    const std::string name(packing_name(packing));
    add(("read_and_pack/npy/" + name).c_str(), read_and_pack, files().npy(), packing);
    add(("read_and_pack/idx/" + name).c_str(), read_and_pack, files().idx(), packing);
  }
  add("pack_in_memory/best-fit-decreasing", pack_in_memory, Packing::kBestFitDecreasing);
  add("first_window/npy", first_window, files().npy());
  add("statistics", statistics);
}

}  // namespace
}  // namespace libra

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  libra::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
