// Prints what a training step asks of CUDA, with and without CUDA graphs:
//   bazel run --config=cuda_host //tests/benchmark/compute:cuda_calls_report
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "tests/benchmark/compute/cuda_calls.h"

namespace parasol {
namespace {

void Print(const std::string& name, const cuda_on_host::Counts& counts) {
  absl::PrintF("%-18s %7d %8d %7d %4d %10d %4d %10d %6d %7d %6d %6d %7d %6d\n",
               name, counts.kernels, counts.library_calls, counts.memsets,
               counts.copies_in, counts.bytes_in, counts.copies_out,
               counts.bytes_out, counts.copies_within, counts.records,
               counts.stream_waits, counts.synchronizations,
               counts.device_selections, counts.graph_launches);
  std::fflush(stdout);
}

absl::Status Run() {
  absl::PrintF("%-18s %7s %8s %7s %4s %10s %4s %10s %6s %7s %6s %6s %7s %6s\n",
               "a step of", "kernels", "products", "memsets", "in", "bytes",
               "out", "bytes", "within", "records", "orders", "syncs",
               "selects", "graphs");
  for (const CountedModel& counted : AllCountedModels()) {
    for (const bool cuda_graphs : {false, true}) {
      ASSIGN_OR_RETURN(const cuda_on_host::Counts counts,
                       CallsOfAStep(counted, cuda_graphs));
      Print(absl::StrCat(counted.name, cuda_graphs ? ", graphs" : ""), counts);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  parasol::ParseCommandLine(argc, argv,
                            "Counts the calls of CUDA that a training step "
                            "makes: launches, copies, events, waits.");
  return parasol::ExitWith(parasol::Run());
}
