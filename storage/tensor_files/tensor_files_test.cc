// What every format of tensor files must do, and files of the real libraries.

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/byte_order.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/csv_tensors.h"
#include "storage/tensor_files/npz_reader.h"
#include "storage/tensor_files/npz_writer.h"
#include "storage/tensor_files/safetensors_reader.h"
#include "storage/tensor_files/safetensors_writer.h"
#include "storage/tensor_files/tensor_bundle.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTestData[] = "storage/tensor_files/testdata/";

using Writer = absl::StatusOr<std::unique_ptr<TensorWriter>>;
using Reader = absl::StatusOr<std::unique_ptr<TensorReader>>;

struct Format {
  std::string name;
  std::function<Writer(const std::string&, std::vector<TensorPart>)> create;
  std::function<Reader(const std::string&)> open;
  // The file with the most bytes of tensors.
  std::string data_file;
  bool has_checksums = false;
};

std::vector<Format> Formats() {
  return {{"Safetensors",
           [](const std::string& path, std::vector<TensorPart> parts) {
             return NewSafetensorsWriter(path, std::move(parts));
           },
           OpenSafetensors, ""},
          {"Npz",
           [](const std::string& path, std::vector<TensorPart> parts) {
             return NewNpzWriter(path, std::move(parts));
           },
           OpenNpz, "", true},
          {"Npz64",
           [](const std::string& path, std::vector<TensorPart> parts) {
             return NewNpzWriter(path, std::move(parts), {.first_64_bit = 100});
           },
           OpenNpz, "", true},
          {"Csv",
           [](const std::string& path, std::vector<TensorPart> parts) {
             return NewCsvWriter(path, std::move(parts));
           },
           OpenCsv, "/0-dense_kernel.csv"},
          {"TensorBundle",
           [](const std::string& path, std::vector<TensorPart> parts) {
             return NewTensorBundleWriter(path, std::move(parts));
           },
           OpenTensorBundle, ".data-00000-of-00001", true}};
}

class TensorFilesTest : public ::testing::TestWithParam<Format> {
 protected:
  TensorFilesTest() {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }

  std::string path() const { return directory_ + "/model"; }

 private:
  const std::string directory_ = absl::StrCat(
      ::testing::TempDir(), "/",
      absl::StrReplaceAll(
          ::testing::UnitTest::GetInstance()->current_test_info()->name(),
          {{"/", "_"}}));
};

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

TensorPart Part(TensorInfo tensor, int64_t part, int64_t parts, int64_t first,
                int64_t rows) {
  return {.tensor = std::move(tensor),
          .first_row = first,
          .rows = rows,
          .part = part,
          .parts = parts};
}

const std::vector<float> kKernel = {1.5f,   -0.0f,         INFINITY,
                                    1e-45f, 3.4028235e38f, 0.1f};

// A variable, a table in two parts, a scalar and a tensor without elements.
std::vector<TensorPart> SomeParts() {
  const TensorInfo ids = {"users/ids", ElementType::kUint64, {3}};
  const TensorInfo rows = {"users/rows", ElementType::kFloat32, {3, 2}};
  return {WholeTensor({"dense/kernel", ElementType::kFloat32, {2, 3}}),
          Part(ids, 0, 2, 0, 2),
          Part(rows, 0, 2, 0, 2),
          Part(ids, 1, 2, 2, 1),
          Part(rows, 1, 2, 2, 1),
          WholeTensor({"none", ElementType::kFloat32, {0, 4}}),
          WholeTensor({"global_step", ElementType::kInt64, {}})};
}

std::map<std::string, std::string> SomeBytes() {
  return {{"dense/kernel", Bytes(kKernel)},
          {"users/ids", Bytes<uint64_t>({7, uint64_t{1} << 63, 9})},
          {"users/rows", Bytes<float>({1, 2, 3, 4, 5, 6})},
          {"none", ""},
          {"global_step", Bytes<int64_t>({-12})}};
}

absl::Status WriteSome(const Format& format, const std::string& path) {
  ASSIGN_OR_RETURN(const auto writer, format.create(path, SomeParts()));
  RETURN_IF_ERROR(writer->Append(Bytes<float>({kKernel[0], kKernel[1]})));
  RETURN_IF_ERROR(writer->Append(
      Bytes<float>({kKernel[2], kKernel[3], kKernel[4], kKernel[5]})));
  RETURN_IF_ERROR(writer->Append(Bytes<uint64_t>({7, uint64_t{1} << 63})));
  RETURN_IF_ERROR(writer->Append(Bytes<float>({1, 2, 3, 4})));
  RETURN_IF_ERROR(writer->Append(Bytes<uint64_t>({9})));
  RETURN_IF_ERROR(writer->Append(Bytes<float>({5, 6})));
  RETURN_IF_ERROR(writer->Append(Bytes<int64_t>({-12})));
  return writer->Finish();
}

// All tensors' bytes by their names, read `step` elements at a time.
absl::StatusOr<std::map<std::string, std::string>> ReadAll(TensorReader& reader,
                                                           uint64_t step) {
  std::map<std::string, std::string> all;
  for (size_t i = 0; i < reader.tensors().size(); ++i) {
    const TensorInfo& tensor = reader.tensors()[i];
    if (tensor.type == ElementType::kOther) continue;
    ASSIGN_OR_RETURN(const uint64_t size, CountBytes(tensor));
    std::string bytes(size, '\0');
    const uint64_t piece = step * BytesOf(tensor.type);
    for (uint64_t first = 0; first < size; first += piece) {
      RETURN_IF_ERROR(reader.Read(
          i, first,
          absl::MakeSpan(bytes).subspan(first, std::min(piece, size - first))));
    }
    all[tensor.name] = bytes;
  }
  return all;
}

absl::StatusOr<std::map<std::string, std::string>> ReadAllAt(
    const Format& format, const std::string& path, uint64_t step = 2) {
  ASSIGN_OR_RETURN(auto reader, format.open(path));
  ASSIGN_OR_RETURN(reader, JoinParts(std::move(reader)));
  return ReadAll(*reader, step);
}

TEST_P(TensorFilesTest, TensorsComeBackToTheBitWhateverThePieces) {
  ASSERT_OK(WriteSome(GetParam(), path()));
  for (const uint64_t step : {1, 2, 5, 100}) {
    EXPECT_THAT(ReadAllAt(GetParam(), path(), step), IsOkAndHolds(SomeBytes()));
  }
}

TEST_P(TensorFilesTest, PartsAreOneTensorAgain) {
  ASSERT_OK(WriteSome(GetParam(), path()));
  ASSERT_OK_AND_ASSIGN(auto reader, GetParam().open(path()));
  ASSERT_OK_AND_ASSIGN(reader, JoinParts(std::move(reader)));
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const TensorInfo& tensor : reader->tensors()) {
    shapes[tensor.name] = tensor.shape;
  }
  EXPECT_THAT(shapes["users/rows"], ElementsAre(3, 2));
  EXPECT_THAT(shapes["none"], ElementsAre(0, 4));
  EXPECT_THAT(shapes["global_step"], ElementsAre());
}

TEST_P(TensorFilesTest, ReadingBackGivesTheSameBytes) {
  ASSERT_OK(WriteSome(GetParam(), path()));
  ASSERT_OK_AND_ASSIGN(auto reader, GetParam().open(path()));
  size_t kernel = 0;
  while (reader->tensors()[kernel].name != "dense/kernel") ++kernel;
  std::string bytes(8, '\0');
  for (const size_t first : {4, 1, 0, 3}) {
    ASSERT_OK(reader->Read(kernel, first * 4, absl::MakeSpan(bytes)));
    EXPECT_EQ(bytes, Bytes(kKernel).substr(first * 4, 8));
  }
}

TEST_P(TensorFilesTest, NothingIsThereBeforeTheEnd) {
  const auto files = [&] {
    std::vector<std::string> names;
    const fs::path parent = fs::path(path()).parent_path();
    for (const auto& entry : fs::directory_iterator(parent)) {
      names.push_back(entry.path().filename());
    }
    return names;
  };
  {
    ASSERT_OK_AND_ASSIGN(const auto writer,
                         GetParam().create(path(), SomeParts()));
    ASSERT_OK(writer->Append(Bytes(kKernel)));
    for (const std::string& name : files()) {
      EXPECT_TRUE(absl::EndsWith(name, ".new")) << name;
    }
    EXPECT_THAT(writer->Finish(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("users/ids.part-00000-of-00002 lacks 16")));
  }
  EXPECT_THAT(files(), ElementsAre());
}

TEST_P(TensorFilesTest, SurplusBytesAreRefused) {
  ASSERT_OK_AND_ASSIGN(
      const auto writer,
      GetParam().create(path(),
                        {WholeTensor({"w", ElementType::kFloat32, {2}})}));
  EXPECT_THAT(writer->Append(Bytes<float>({1, 2, 3})),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

void WriteTo(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Every byte of the largest file is altered, and the file cut after it: what is
// damaged is an error or, without checksums, other numbers; never a crash.
TEST_P(TensorFilesTest, DamageIsAnError) {
  ASSERT_OK(WriteSome(GetParam(), path()));
  const std::string file = path() + GetParam().data_file;
  ASSERT_OK_AND_ASSIGN(const std::string good, ReadFile(file, 1 << 20));
  for (size_t i = 0; i < good.size(); i += 3) {
    std::string altered = good;
    altered[i] = static_cast<char>(altered[i] ^ 0x15);
    WriteTo(file, altered);
    const auto read = ReadAllAt(GetParam(), path());
    if (read.ok() && GetParam().has_checksums) {
      // A date, say, or the name of a tensor.
      for (const auto& [name, bytes] : *read) {
        if (SomeBytes().contains(name)) {
          EXPECT_EQ(bytes, SomeBytes()[name]) << "byte " << i << ", " << name;
        }
      }
    }
    WriteTo(file, good.substr(0, i));
    EXPECT_FALSE(ReadAllAt(GetParam(), path()).ok() && GetParam().has_checksums)
        << "cut at " << i;
  }
}

// A file whose header is `header`.
absl::Status OpenWithHeader(const std::string& header) {
  const std::string path = ::testing::TempDir() + "/header.safetensors";
  std::string bytes;
  AppendLittleEndian(bytes, uint64_t{header.size()});
  WriteTo(path, bytes + header);
  return OpenSafetensors(path).status();
}

TEST(SafetensorsTest, HeadersAreReadInLittleMemoryWhateverTheySay) {
  EXPECT_THAT(OpenWithHeader(std::string(20'000'000, '[')),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("no JSON object: line 1, column 1: not an "
                                 "object")));
  EXPECT_THAT(OpenWithHeader("{\"w\": " + std::string(20'000'000, '[')),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("nested deeper than 64")));
  EXPECT_THAT(
      OpenWithHeader("{\"__metadata__\": " + std::string(20'000'000, '[')),
      StatusIs(absl::StatusCode::kDataLoss,
               HasSubstr("nested deeper than 64")));
}

TEST(SafetensorsTest, TwoTensorsOfOneNameAreDamage) {
  const std::string tensor =
      R"("w": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]})";
  EXPECT_OK(OpenWithHeader("{" + tensor + "}"));
  EXPECT_THAT(OpenWithHeader("{" + tensor + ", " + tensor + "}"),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("two tensors have the name w")));
}

TEST(CsvTest, SurplusNumbersAreDamage) {
  const std::string path = ::testing::TempDir() + "/surplus";
  fs::remove_all(path);
  ASSERT_OK_AND_ASSIGN(
      const auto writer,
      NewCsvWriter(path, {WholeTensor({"w", ElementType::kFloat32, {2, 2}})}));
  ASSERT_OK(writer->Append(Bytes<float>({1, 2, 3, 4})));
  ASSERT_OK(writer->Finish());
  const auto read = [&] {
    std::string bytes(16, '\0');
    ASSERT_OK_AND_ASSIGN(const auto reader, OpenCsv(path));
    // Pieces, and once more from the front.
    for (int round = 0; round < 2; ++round) {
      ASSERT_OK(reader->Read(0, 0, absl::MakeSpan(bytes).first(12)));
      ASSERT_OK(reader->Read(0, 12, absl::MakeSpan(bytes).first(4)));
    }
  };
  read();
  std::ofstream(path + "/0-w.csv", std::ios::app) << "\n\r\n";
  read();
  std::ofstream(path + "/0-w.csv", std::ios::app) << "5\n";
  std::string bytes(16, '\0');
  ASSERT_OK_AND_ASSIGN(const auto reader, OpenCsv(path));
  EXPECT_THAT(reader->Read(0, 0, absl::MakeSpan(bytes)),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("0-w.csv: has more numbers")));
}

// Many records of one member would make reading take as many times as long.
TEST(NpzTest, MembersThatShareBytesAreDamage) {
  const std::string path = ::testing::TempDir() + "/shared.npz";
  ASSERT_OK_AND_ASSIGN(
      const auto writer,
      NewNpzWriter(path, {WholeTensor({"w", ElementType::kFloat32, {1000}})}));
  ASSERT_OK(writer->Append(Bytes(std::vector<float>(1000, 1.f))));
  ASSERT_OK(writer->Finish());
  ASSERT_OK(OpenNpz(path).status());
  ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(path, 1 << 20));
  const size_t record = bytes.find("PK\x01\x02");
  const size_t end = bytes.find("PK\x05\x06");
  std::string second = bytes.substr(record, end - record);
  second.replace(second.find("w.npy"), 1, "v");
  // The end record has the directory's size at 12.
  bytes.insert(end, second);
  bytes[end + second.size() + 12] = static_cast<char>(2 * second.size());
  WriteTo(path, bytes);
  EXPECT_THAT(OpenNpz(path).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("more bytes than the file")));
}

TEST_P(TensorFilesTest, MissingFileIsNamed) {
  EXPECT_THAT(GetParam().open(path()).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path())));
}

INSTANTIATE_TEST_SUITE_P(All, TensorFilesTest, ::testing::ValuesIn(Formats()),
                         [](const ::testing::TestParamInfo<Format>& format) {
                           return format.param.name;
                         });

absl::StatusOr<std::map<std::string, std::string>> ReadTestData(
    absl::StatusOr<std::unique_ptr<TensorReader>> reader) {
  RETURN_IF_ERROR(reader.status());
  return ReadAll(**reader, 3);
}

// testdata/make_files.py has the same numbers.
std::map<std::string, std::string> LibraryTensors() {
  return {{"dense/kernel",
           Bytes<float>({1.5f, -2.25f, INFINITY, 0.0f, -0.0f, 1e-45f})},
          {"half", Bytes<uint16_t>({0x3c00, 0xb800, 0x7bff, 0x0001})},
          {"double", Bytes<double>({1e300, 0.1})},
          {"ids", Bytes<uint64_t>({7, (uint64_t{1} << 63) + 1})},
          {"step", Bytes<int64_t>({12})},
          {"small", Bytes<int32_t>({-3, 4})},
          {"none", ""}};
}

TEST(LibraryFilesTest, NumpysArraysAreReadStoredAndCompressed) {
  for (const char* file : {"numpy_stored.npz", "numpy_compressed.npz"}) {
    EXPECT_THAT(ReadTestData(OpenNpz(absl::StrCat(kTestData, file))),
                IsOkAndHolds(LibraryTensors()))
        << file;
  }
}

TEST(LibraryFilesTest, SafetensorsOfTheLibraryAreRead) {
  EXPECT_THAT(ReadTestData(OpenSafetensors(
                  absl::StrCat(kTestData, "library.safetensors"))),
              IsOkAndHolds(LibraryTensors()));
}

TEST(LibraryFilesTest, TensorFlowsPartitionedVariableIsOneTensor) {
  std::vector<float> w(24);
  for (int i = 0; i < 24; ++i) w[i] = static_cast<float>(i);
  EXPECT_THAT(
      ReadTestData(OpenTensorBundle(absl::StrCat(kTestData, "part"))),
      IsOkAndHolds(std::map<std::string, std::string>{{"w", Bytes(w)}}));
}

TEST(LibraryFilesTest, TensorFlowsPartitionedVariableIsWrittenToTheBit) {
  const std::string directory = ::testing::TempDir() + "written";
  ASSERT_OK(MakeDirectories(directory));
  const std::string prefix = directory + "/part";
  const TensorInfo w = {"w", ElementType::kFloat32, {6, 4}};
  ASSERT_OK_AND_ASSIGN(const auto writer,
                       NewTensorBundleWriter(
                           prefix, {Part(w, 0, 2, 0, 3), Part(w, 1, 2, 3, 3)}));
  std::string expected;
  for (const char* shard : {"0", "1"}) {
    ASSERT_OK_AND_ASSIGN(
        const std::string bytes,
        ReadFile(absl::StrCat(kTestData, "part.data-0000", shard, "-of-00002"),
                 1000));
    ASSERT_OK(writer->Append(bytes));
    expected += bytes;
  }
  ASSERT_OK(writer->Finish());
  EXPECT_THAT(ReadFile(DataFileName(prefix, 0, 1), 1000),
              IsOkAndHolds(expected));
  EXPECT_THAT(NewestTensorBundle(directory), IsOkAndHolds(prefix));
  EXPECT_THAT(
      ReadTestData(OpenTensorBundle(prefix)),
      IsOkAndHolds(std::map<std::string, std::string>{{"w", expected}}));
}

TEST(LibraryFilesTest, KerasVariablesHaveTheirFullNames) {
  const std::string prefix = absl::StrCat(kTestData, "keras_legacy");
  ASSERT_OK_AND_ASSIGN(auto values, ReadTestData(OpenNpz(prefix + ".npz")));
  ASSERT_OK_AND_ASSIGN(const auto bundle,
                       ReadTestData(OpenTensorBundle(prefix)));
  ASSERT_EQ(values.size(), 12);
  for (const auto& [name, bytes] : values) {
    ASSERT_TRUE(bundle.contains(name)) << name;
    EXPECT_EQ(bundle.at(name), bytes) << name;
  }
  EXPECT_EQ(bundle.at("Adam/iter"), Bytes<int64_t>({3}));
}

TEST(LibraryFilesTest, CompressedIndexAndOldCheckpointAreRead) {
  EXPECT_OK(ReadTestData(OpenTensorBundle(absl::StrCat(kTestData, "snappy"))));
  EXPECT_OK(
      ReadTestData(OpenTensorBundle(absl::StrCat(kTestData, "lso_ckpt"))));
}

}  // namespace
}  // namespace parasol
