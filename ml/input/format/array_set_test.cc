#include "ml/input/format/array_set.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "base/testing/python.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/dataset_columns.h"
#include "ml/input/format/given_examples.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/read_all.h"
#include "storage/tensor_files/npy_header.h"
#include "storage/tensor_files/npz_writer.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kModel[] =
    "loss { binary_crossentropy {} } input { name: 'x' dense { shape: 2 } } ";
constexpr char kSet[] = "array { file: 'set.npz' label: 'y' } ";

// An array to be written.
struct Written {
  TensorInfo tensor;
  std::string bytes;
};

template <typename T>
Written Array(const std::string& name, ElementType type,
              const std::vector<int64_t>& shape, const std::vector<T>& values) {
  return {{name, type, shape},
          std::string(reinterpret_cast<const char*>(values.data()),
                      values.size() * sizeof(T))};
}

Written Floats(const std::string& name, const std::vector<int64_t>& shape,
               const std::vector<float>& values) {
  return Array(name, ElementType::kFloat32, shape, values);
}

Written Ints(const std::string& name, const std::vector<int64_t>& values) {
  return Array(name, ElementType::kInt64, {static_cast<int64_t>(values.size())},
               values);
}

void WriteNpz(const std::string& name, const std::vector<Written>& arrays) {
  std::vector<TensorPart> parts;
  for (const Written& array : arrays)
    parts.push_back(WholeTensor(array.tensor));
  const auto writer =
      NewNpzWriter(testing::TempDir() + "/" + name, std::move(parts));
  ASSERT_OK(writer.status());
  for (const Written& array : arrays) {
    ASSERT_OK((*writer)->Append(array.bytes));
  }
  ASSERT_OK((*writer)->Finish());
}

void WriteNpy(const std::string& name, const Written& array) {
  WriteTestFile(name, NpyHeader(array.tensor) + array.bytes);
}

// Arrays of training and of testing, as mnist.npz has them.
void WriteBothSets() {
  WriteNpz("set.npz",
           {Array<uint8_t>("x_train", ElementType::kUint8, {3, 1, 2},
                           {0, 255, 1, 2, 3, 4}),
            Array<uint8_t>("x_test", ElementType::kUint8, {1, 1, 2}, {7, 8}),
            Ints("y_train", {1, 0, 1}), Ints("y_test", {0})});
}

TEST(ArraySetTest, ArraysOfEveryTypeAreColumns) {
  WriteNpz(
      "set.npz",
      {Floats("x", {2, 2}, {.5, -2, 1, 2}), Ints("y", {1, 0}),
       Array<double>("w", ElementType::kFloat64, {2}, {3, .25}),
       Array<uint16_t>("half", ElementType::kFloat16, {2}, {0x3c00, 0xb800}),
       Array<int8_t>("small", ElementType::kInt8, {2}, {-3, 4}),
       Array<uint8_t>("yes", ElementType::kBool, {2, 1}, {1, 0}),
       Array<uint64_t>("id", ElementType::kUint64, {2},
                       {7, std::numeric_limits<uint64_t>::max()})});
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll("array { file: 'set.npz' label: 'y' weight: 'w' }",
              absl::StrCat(kModel,
                           "input { name: 'd' dense { column { name: 'half' } "
                           "column { name: 'small' } column { name: 'yes' } "
                           "column { name: 'id' } } } input { name: 'id' ids "
                           "{} }")));
  EXPECT_THAT(batch.dense[0].values, ElementsAre(.5, -2, 1, 2));
  EXPECT_THAT(batch.dense[1].values,
              ElementsAre(1, -3, 1, 7, -.5, 4, 0, 0x1p64f));
  EXPECT_THAT(batch.ids[0].ids,
              ElementsAre(7, std::numeric_limits<uint64_t>::max()));
  EXPECT_THAT(batch.labels, ElementsAre(1, 0));
  EXPECT_THAT(batch.weights, ElementsAre(3, .25));
}

// What a float32 can't tell apart before the mean is subtracted.
TEST(ArraySetTest, NumbersOf64BitsKeepTheirDigits) {
  WriteNpz("set.npz",
           {Array<double>("x", ElementType::kFloat64, {2}, {1e9 + 1, 1e9 + 2}),
            Ints("y", {1, 0})});
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll(kSet,
              "loss { binary_crossentropy {} } input { name: 'x' dense { "
              "column { name: 'x' mean: 1e9 } } } input { name: 'i' ids { "
              "column { name: 'x' vocabulary { value: '1000000002' } } } }"));
  EXPECT_THAT(batch.dense[0].values, ElementsAre(1, 2));
  EXPECT_THAT(batch.ids[0].ids, ElementsAre(1, 0));
}

TEST(ArraySetTest, FilesOfOneArrayEachMayBeCutInOtherPlaces) {
  WriteNpy("x-0.npy", Floats("", {1, 2}, {1, 2}));
  WriteNpy("x-1.npy", Floats("", {2, 2}, {3, 4, 5, 6}));
  WriteNpy("y.npy", Ints("", {1, 0, 1}));
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll("array { array { name: 'x' file: 'x-*.npy' } array { name: 'y' "
              "file: 'y.npy' } label: 'y' }",
              kModel));
  EXPECT_THAT(batch.dense[0].values, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(batch.labels, ElementsAre(1, 0, 1));
}

TEST(ArraySetTest, ArchivesFollowEachOther) {
  WriteNpz("part-0.npz", {Floats("x", {1, 2}, {1, 2}), Ints("y", {1})});
  WriteNpz("part-1.npz",
           {Ints("y", {0, 1}), Floats("x", {2, 2}, {3, 4, 5, 6})});
  const job::ArrayDataset arrays =
      FromText<job::ArrayDataset>("file: 'part-*.npz' label: 'y'");
  ASSERT_OK_AND_ASSIGN(const ModelInputs inputs, InputsFromText(kModel));
  SetOptions options = {.data_dir = testing::TempDir(), .inputs = inputs};
  ASSERT_OK_AND_ASSIGN(const auto set, OpenArraySet(arrays, options));
  EXPECT_THAT(set->file_starts(), ElementsAre(0, 1, 3));

  options.sample_bytes = 33;  // an example has 16
  ASSERT_OK_AND_ASSIGN(const auto sample, OpenArraySet(arrays, options));
  EXPECT_TRUE(sample->is_sample());
  EXPECT_THAT(sample->file_starts(), ElementsAre(0, 1, 2));
}

TEST(ArraySetTest, ColumnsAreTheArraysWithAsManyExamplesAsTheLabel) {
  WriteBothSets();
  // Its only column that is no label.
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll("array { file: 'set.npz' label: 'y_train' }",
              "input { name: 'image' dense { shape: [1, 2] } }"));
  EXPECT_THAT(batch.dense[0].values, ElementsAre(0, 255, 1, 2, 3, 4));
  EXPECT_THAT(batch.labels, ElementsAre(1, 0, 1));

  const auto test =
      FromText<job::Dataset>("array { file: 'set.npz' label: 'y_test' }");
  ASSERT_OK_AND_ASSIGN(const Columns columns,
                       ReadColumns(test, testing::TempDir()));
  EXPECT_THAT(columns.names, ElementsAre("x_test", "y_test"));
  EXPECT_THAT(columns.labels_and_weights, ElementsAre("y_test"));
  ASSERT_OK_AND_ASSIGN(const auto raw,
                       RawColumns::Open(test, testing::TempDir()));
  EXPECT_THAT(raw->names(), ElementsAre("x_test", "y_test"));
  ASSERT_EQ(raw->size(), 1);
  ColumnValues row;
  ASSERT_OK(raw->Read(0, row));
  EXPECT_THAT(row, ElementsAre(SizeIs(2), SizeIs(1)));
}

TEST(ArraySetTest, WhatDoesNotFitIsNamed) {
  WriteBothSets();
  const struct {
    const char* set;
    const char* model;
    const char* want;
  } cases[] = {
      {"label: 'y_train'", "input { name: 'x_test' dense { shape: 2 } }",
       "array \"x_test\" has 1 examples, and \"y_train\" 3"},
      {"label: 'y_trian'", "input { name: 'x_train' dense { shape: 2 } }",
       "array.label: there is no array \"y_trian\", but x_train, y_train; did "
       "you mean \"y_train\"?"},
      {"label: 'y_train'", "input { name: 'x_train' dense { shape: [3, 1] } }",
       "model input x_train is [3, 1] of 1 array, but an example of "
       "\"x_train\" is [1, 2]"},
      {"label: 'y_train' weight: 'w'",
       "input { name: 'x_train' dense { shape: 2 } }",
       "array.weight: there is no array \"w\""},
      {"label: 'x_train'", "input { name: 'y_train' dense { shape: 1 } }",
       "set.npz, example 0: the label has 2 values, not 1"},
  };
  for (const auto& [set, model, want] : cases) {
    EXPECT_THAT(
        ReadAll(absl::StrCat("array { file: 'set.npz' ", set, " }"), model)
            .status()
            .ToString(),
        HasSubstr(want));
  }
}

TEST(ArraySetTest, AnArrayThatIsNotReadMayBeOfAnyType) {
  WriteTestFile("names.npy",
                absl::StrCat(NpyHeader({"", ElementType::kOther, {2}})));
  WriteNpy("x.npy", Floats("", {2, 2}, {1, 2, 3, 4}));
  WriteNpy("y.npy", Ints("", {1, 0}));
  const std::string set =
      "array { array { name: 'names' file: 'names.npy' } array { name: 'x' "
      "file: 'x.npy' } array { name: 'y' file: 'y.npy' } label: 'y' }";
  EXPECT_OK(ReadAll(set, kModel).status());
  EXPECT_THAT(
      ReadAll(set, "input { name: 'names' ids {} }"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("array \"names\" has elements of a type that is not "
                         "read; save it as float32")));
}

TEST(ArraySetTest, FilesThatDoNotFitTogetherAreNamed) {
  const auto read = [] {
    return ReadAll("array { file: 'fit-*.npz' label: 'y' }", kModel).status();
  };
  WriteNpz("fit-0.npz", {Floats("x", {1, 2}, {1, 2}), Ints("y", {1})});
  WriteNpz("fit-1.npz", {Floats("x", {1, 3}, {3, 4, 5}), Ints("y", {1})});
  EXPECT_THAT(read(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("has examples of the shape [3]")));
  WriteNpz("fit-1.npz", {Ints("y", {1})});
  EXPECT_THAT(read(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("is in 1 of the 2 files")));
  WriteNpz("fit-1.npz",
           {Array<int32_t>("x", ElementType::kInt32, {1, 2}, {3, 4}),
            Ints("y", {1})});
  EXPECT_THAT(read(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("has elements of the type int32")));
}

TEST(ArraySetTest, DamagedFilesAreErrorsAlsoIfCorruptRecordsAreSkipped) {
  WriteNpy("y.npy", Ints("", {1}));
  const std::string good = NpyHeader({"", ElementType::kFloat32, {1, 2}});
  const struct {
    std::string bytes;
    const char* want;
  } cases[] = {
      {"", "is no .npy array"},
      {good, "has 0 bytes for the shape [1, 2]"},
      {good.substr(0, 20), "ends within its header"},
      {NpyHeader({"", ElementType::kFloat32, {1LL << 60, 8}}),
       "is not possible"},
      {NpyHeader({"", ElementType::kFloat32, {}}) + "1234", "is one number"},
      {NpyHeader({"", ElementType::kFloat32, {1, 0}}), "has no values"},
  };
  for (const auto& [bytes, want] : cases) {
    WriteTestFile("x.npy", bytes);
    EXPECT_THAT(
        ReadAll("on_corrupt: SKIP array { array { name: 'x' file: 'x.npy' } "
                "array { name: 'y' file: 'y.npy' } label: 'y' }",
                kModel)
            .status()
            .ToString(),
        AllOf(HasSubstr("x"), HasSubstr(want)));
  }
}

TEST(ArraySetTest, NotANumberIsACorruptExample) {
  WriteNpz("set.npz", {Floats("x", {2, 2}, {1, 2, NAN, 4}), Ints("y", {1, 0})});
  EXPECT_THAT(ReadAll(kSet, kModel),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("set.npz, example 1"), HasSubstr("x"))));
  ASSERT_OK_AND_ASSIGN(
      const Batch rest,
      ReadAll(absl::StrCat("on_corrupt: SKIP ", kSet), kModel));
  EXPECT_THAT(rest.labels, ElementsAre(1));
}

TEST(ArraySetTest, RequestsHaveTheInputsAlone) {
  ASSERT_OK_AND_ASSIGN(const ModelInputs inputs, InputsFromText(kModel));
  ASSERT_OK_AND_ASSIGN(
      const GivenExamples given,
      GivenExamples::Create(FromText<job::Dataset>(kSet), inputs));
  ASSERT_THAT(given.columns(), SizeIs(1));
  EXPECT_EQ(given.columns()[0].name, "x");
}

// Each type and version that numpy writes, stored and compressed.
TEST(ArraySetTest, NumpysFilesAreRead) {
  if (const std::string why = PythonLacks("numpy"); !why.empty()) {
    GTEST_SKIP() << why;
  }
  constexpr char kWrite[] = R"(
import numpy as np, sys
out = sys.argv[1]
types = [np.float16, np.float32, np.float64, np.bool_, np.int8, np.int16,
         np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
arrays = {np.dtype(t).name: np.array([[0, 1], [1, 1], [1, 0]]).astype(t)
          for t in types}
arrays['y'] = np.array([1, 0, 1])
arrays['scalar'] = np.float32(3)
arrays['names'] = np.array(['a', 'b', 'c'])
np.savez(out + '/stored.npz', **arrays)
np.savez_compressed(out + '/packed.npz', **arrays)
for version in [(1, 0), (2, 0), (3, 0)]:
    with open(out + '/version%d.npy' % version[0], 'wb') as file:
        np.lib.format.write_array(file, arrays['float32'], version)
np.save(out + '/fortran.npy', np.asfortranarray(arrays['float32']))
np.save(out + '/big.npy', arrays['float32'].astype('>f4'))
np.save(out + '/y.npy', arrays['y'])
)";
  const CompletedProcess run = RunPython(kWrite, {testing::TempDir()});
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  for (const char* file : {"stored.npz", "packed.npz"}) {
    for (const char* type :
         {"float16", "float32", "float64", "bool", "int8", "int16", "int32",
          "int64", "uint8", "uint16", "uint32", "uint64"}) {
      ASSERT_OK_AND_ASSIGN(
          const Batch batch,
          ReadAll(
              absl::StrCat("array { file: '", file, "' label: 'y' }"),
              absl::StrCat("loss { binary_crossentropy {} } input { name: '",
                           type, "' dense { shape: 2 } }")));
      EXPECT_THAT(batch.dense[0].values, ElementsAre(0, 1, 1, 1, 1, 0)) << type;
      EXPECT_THAT(batch.labels, ElementsAre(1, 0, 1)) << type;
    }
  }
  const auto read = [](const std::string& file) {
    return ReadAll(absl::StrCat("array { array { name: 'x' file: '", file,
                                "' } array { name: 'y' file: 'y.npy' } label: "
                                "'y' }"),
                   kModel);
  };
  for (const char* file : {"version1.npy", "version2.npy", "version3.npy"}) {
    ASSERT_OK_AND_ASSIGN(const Batch batch, read(file));
    EXPECT_THAT(batch.dense[0].values, ElementsAre(0, 1, 1, 1, 1, 0)) << file;
  }
  EXPECT_THAT(read("fortran.npy").status().ToString(),
              HasSubstr("fortran.npy: is in Fortran's order; save "
                        "numpy.ascontiguousarray of it"));
  EXPECT_THAT(read("big.npy").status().ToString(),
              HasSubstr("integer of the machine's byte order"));
}

}  // namespace
}  // namespace parasol
