#include "tests/fuzz/readers/import_targets.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "storage/tensor_files/csv_tensors.h"
#include "storage/tensor_files/npy_header.h"
#include "storage/tensor_files/npz_writer.h"
#include "storage/tensor_files/pickled_tensors.h"
#include "storage/tensor_files/safetensors_writer.h"
#include "storage/tensor_files/sorted_table.h"
#include "storage/tensor_files/tensor_bundle.h"
#include "storage/tensor_files/tensor_format.h"
#include "tests/fuzz/readers/input_bytes.h"
#include "tests/fuzz/readers/scratch_folder.h"

namespace parasol {
namespace {

constexpr char kTestData[] = "storage/tensor_files/testdata/";
// From there.
constexpr char kKerasData[] = "../keras/testdata/";
// A tensor is read up to here: files may say more than they have.
constexpr uint64_t kMaxReadBytes = 1 << 20;

std::string TestData(absl::string_view name) {
  std::ifstream file(absl::StrCat(kTestData, name), std::ios::binary);
  CHECK(file.is_open()) << "not there, from the repository's root: "
                        << kTestData << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Reads all tensors twice: whole, and in pieces from the front again.
void ReadThrough(absl::StatusOr<std::unique_ptr<TensorReader>> opened) {
  if (!opened.ok()) return;
  absl::StatusOr<std::unique_ptr<TensorReader>> joined =
      JoinParts(*std::move(opened));
  if (!joined.ok()) return;
  TensorReader& reader = **joined;
  for (size_t i = 0; i < reader.tensors().size(); ++i) {
    const absl::StatusOr<uint64_t> bytes = CountBytes(reader.tensors()[i]);
    CHECK(bytes.ok()) << "an impossible shape is listed: " << bytes.status();
    const uint64_t element = BytesOf(reader.tensors()[i].type);
    if (element == 0) continue;
    std::string whole(std::min(*bytes, kMaxReadBytes), '\0');
    if (!reader.Read(i, 0, absl::MakeSpan(whole)).ok()) continue;
    const size_t half = whole.size() / element / 2 * element;
    std::string again(half, '\0');
    if (!reader.Read(i, 0, absl::MakeSpan(again)).ok()) continue;
    CHECK(again == whole.substr(0, half)) << reader.tensors()[i].name;
  }
}

void FeedFile(TensorFormat format, absl::string_view input) {
  static const ScratchFolder folder;
  ReadThrough(OpenTensors(format, folder.Write("tensors", input)));
}

// Writes tensors of two types, one of them in parts.
void WriteTensors(absl::StatusOr<std::unique_ptr<TensorWriter>> opened) {
  CHECK(opened.ok()) << opened.status();
  for (const TensorPart& part : (*opened)->parts()) {
    const std::string bytes(*CountBytes(part.AsTensor()), '\1');
    CHECK((*opened)->Append(bytes).ok());
  }
  CHECK((*opened)->Finish().ok());
}

std::vector<TensorPart> SomeParts() {
  const TensorInfo rows = {"rows", ElementType::kInt64, {4}};
  return {WholeTensor({"w", ElementType::kFloat32, {2, 3}}),
          {.tensor = rows, .first_row = 0, .rows = 1, .part = 0, .parts = 2},
          {.tensor = rows, .first_row = 1, .rows = 3, .part = 1, .parts = 2},
          WholeTensor({"none", ElementType::kFloat64, {0}})};
}

std::vector<std::string> SafetensorsSeeds() {
  const ScratchFolder folder;
  WriteTensors(NewSafetensorsWriter(folder.path() + "/t", SomeParts()));
  return {folder.Read("t"), TestData("library.safetensors")};
}

std::vector<std::string> NpzSeeds() {
  const ScratchFolder folder;
  WriteTensors(NewNpzWriter(folder.path() + "/t", SomeParts()));
  return {folder.Read("t"), TestData("numpy_stored.npz"),
          TestData("numpy_compressed.npz")};
}

// A CSV export is a folder: a list of tensors, and a file for each.
void FeedCsv(absl::string_view input) {
  static const ScratchFolder folder;
  InputBytes bytes(input);
  folder.Write("tensors.csv", bytes.Counted());
  for (const char* name : {"0-w.csv", "1-rows.part-00000-of-00002.csv"}) {
    folder.Write(name, bytes.Counted());
  }
  ReadThrough(OpenTensors(TensorFormat::kCsv, folder.path()));
}

std::vector<std::string> CsvSeeds() {
  const ScratchFolder folder;
  WriteTensors(NewCsvWriter(folder.path() + "/t", SomeParts()));
  return {absl::StrCat(InputBytes::OfCounted(folder.Read("t/tensors.csv")),
                       InputBytes::OfCounted(folder.Read("t/0-w.csv")),
                       InputBytes::OfCounted("1\n2\n3\n4\n"))};
}

// Entries of the index, and the bytes of the data file.
void FeedTensorFlow(absl::string_view input) {
  static const ScratchFolder folder;
  InputBytes bytes(input);
  std::map<std::string, std::string> entries;
  for (int count = bytes.Byte(); count > 0; --count) {
    const std::string key(bytes.Counted());
    entries[key] = std::string(bytes.Counted());
  }
  folder.Write("t.index", EncodeSortedTable(entries));
  folder.Write("t.data-00000-of-00001", bytes.rest());
  folder.Write("t.data-00000-of-00002", bytes.rest());
  folder.Write("t.data-00001-of-00002", bytes.rest());
  ReadThrough(OpenTensors(TensorFormat::kTensorFlow, folder.path() + "/t"));
}

std::string TensorFlowSeed(const std::string& index, const std::string& data) {
  const auto entries = DecodeSortedTable(index);
  CHECK(entries.ok()) << entries.status();
  std::string seed(1, static_cast<char>(entries->size()));
  for (const auto& [key, value] : *entries) {
    absl::StrAppend(&seed, InputBytes::OfCounted(key),
                    InputBytes::OfCounted(value));
  }
  return absl::StrCat(seed, data);
}

std::vector<std::string> TensorFlowSeeds() {
  const ScratchFolder folder;
  WriteTensors(NewTensorBundleWriter(folder.path() + "/t", SomeParts()));
  std::vector<std::string> seeds = {TensorFlowSeed(
      folder.Read("t.index"), folder.Read("t.data-00000-of-00001"))};
  for (const char* name : {"keras_3", "keras_legacy", "keras_new"}) {
    seeds.push_back(
        TensorFlowSeed(TestData(absl::StrCat(name, ".index")),
                       TestData(absl::StrCat(name, ".data-00000-of-00001"))));
  }
  seeds.push_back(TensorFlowSeed(TestData("part.index"),
                                 TestData("part.data-00000-of-00002")));
  return seeds;
}

void FeedTable(absl::string_view input) {
  const auto entries = DecodeSortedTable(input);
  if (!entries.ok()) return;
  const auto again = DecodeSortedTable(EncodeSortedTable(*entries));
  CHECK(again.ok() && *again == *entries);
}

std::vector<std::string> TableSeeds() {
  return {TestData("keras_3.index"), TestData("snappy.index"),
          EncodeSortedTable({{"a", "1"}, {"ab", ""}}, /*block_bytes=*/8)};
}

// Of save(), of save_weights(), of older versions, and of h5py alone: only the
// first has checksums.
std::vector<std::string> KerasSeeds() {
  std::vector<std::string> seeds;
  for (const char* name : {"mlp.keras", "own.weights.h5", "scaled.weights.h5",
                           "mlp.h5", "h5py_earliest.h5", "h5py_latest.h5"}) {
    seeds.push_back(TestData(absl::StrCat(kKerasData, name)));
  }
  return seeds;
}

// The pickle inside a file of PyTorch, which is stored in it as it is.
std::string PickleIn(const std::string& archive) {
  const size_t begin = archive.find("\x80\x02");
  CHECK(begin != std::string::npos);
  return archive.substr(begin, archive.find("PK", begin) - begin);
}

}  // namespace

std::vector<FuzzTarget> ImportTargets() {
  const auto file = [](TensorFormat format) {
    return [format](absl::string_view input) { FeedFile(format, input); };
  };
  return {
      {"safetensors", file(TensorFormat::kSafetensors), SafetensorsSeeds},
      {"npz", file(TensorFormat::kNpz), NpzSeeds},
      {"npy_header",
       [](absl::string_view input) {
         if (NpyHeaderBytes(input).ok()) ParseNpyHeader(input).IgnoreError();
       },
       [] {
         return std::vector<std::string>{
             NpyHeader({"w", ElementType::kFloat32, {2, 3}}),
             NpyHeader({"w", ElementType::kUint64, {}})};
       }},
      {"pytorch", file(TensorFormat::kPyTorch),
       [] { return std::vector<std::string>{TestData("pytorch.pt")}; }},
      {"pickle",
       [](absl::string_view input) { PickledTensors(input).IgnoreError(); },
       [] {
         return std::vector<std::string>{PickleIn(TestData("pytorch.pt"))};
       }},
      {"keras", file(TensorFormat::kKeras), KerasSeeds},
      {"tensorflow", FeedTensorFlow, TensorFlowSeeds},
      {"tensorflow_table", FeedTable, TableSeeds},
      {"tensor_csv", FeedCsv, CsvSeeds},
  };
}

}  // namespace parasol
