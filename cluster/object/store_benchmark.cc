// Prints how long a checkpoint of one file of 640 MB takes in each directory
// that it is given, which may be a URI: to write and commit it, to verify it,
// and to read it (tests/benchmark/object_checkpoints).

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "cluster/object/store_files.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/shard_writer.h"

namespace parasol {
namespace {

constexpr int64_t kFloats = 160'000'000;
constexpr int64_t kFloatsAtOnce = 1'000'000;

absl::Status Write(const std::string& directory) {
  ASSIGN_OR_RETURN(CheckpointStore store,
                   CheckpointStore::OpenForWriting(directory));
  ASSIGN_OR_RETURN(const std::string working, store.Begin(1));
  ASSIGN_OR_RETURN(
      const auto writer,
      ShardWriter::Create(CheckpointStore::PathInWorking(
          working, CheckpointStore::NameInWorking(working, "shard.sst"))));
  std::vector<float> values(kFloatsAtOnce);
  for (int64_t first = 0; first < kFloats; first += kFloatsAtOnce) {
    for (int64_t i = 0; i < kFloatsAtOnce; ++i) {
      values[i] = static_cast<float>((first + i) * 2654435761u % 1000003);
    }
    RETURN_IF_ERROR(writer->AddElements("w", 0, first, 1, values));
  }
  durable::CheckpointManifest manifest;
  manifest.set_global_step(1);
  auto& variable = *manifest.add_variable();
  variable.set_name("w");
  variable.mutable_shape()->Add(kFloats);
  ASSIGN_OR_RETURN(*manifest.add_file(), writer->Finish());
  return store.Commit(working, manifest);
}

absl::Status Read(const std::string& directory) {
  ASSIGN_OR_RETURN(
      const auto reader,
      CheckpointReader::Open(CheckpointStore(directory).PathOf(1)));
  std::vector<float> values(kFloats);
  RETURN_IF_ERROR(
      reader->ReadElements("w", 0, 0, absl::MakeSpan(values)).status());
  return reader->Verify();
}

absl::Status Measure(const std::string& directory) {
  std::printf("%s:", directory.c_str());
  const auto time = [](const char* what,
                       const std::function<absl::Status()>& call) {
    const absl::Time begin = Clock::Real().Now();
    const absl::Status status = call();
    std::printf(" %s %.2f s", what,
                absl::ToDoubleSeconds(Clock::Real().Now() - begin));
    return status;
  };
  RETURN_IF_ERROR(time("written in", [&] { return Write(directory); }));
  RETURN_IF_ERROR(time(", verified in",
                       [&] { return CheckpointStore(directory).Verify(1); }));
  RETURN_IF_ERROR(time(", read in", [&] { return Read(directory); }));
  std::printf("\n");
  return absl::OkStatus();
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  parasol::UseObjectStores();
  for (int i = 1; i < argc; ++i) {
    const absl::Status status = parasol::Measure(argv[i]);
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
