#include "storage/tensor_files/pytorch_reader.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/pickled_tensors.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr char kFile[] = "storage/tensor_files/testdata/pytorch.pt";
constexpr char kTensor[] = "ctorch._utils\n_rebuild_tensor_v2\n";
constexpr char kStorage[] = "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0";

// A pickle's text of fewer than 256 bytes.
std::string Text(absl::string_view text) {
  return absl::StrCat("X", std::string(1, static_cast<char>(text.size())),
                      std::string(3, '\0'), text);
}

std::string Number(int number) {
  return absl::StrCat("K", std::string(1, static_cast<char>(number)));
}

std::string Tuple(const std::vector<int>& numbers) {
  std::string tuple = "(";
  for (const int number : numbers) absl::StrAppend(&tuple, Number(number));
  return tuple + "t";
}

std::string Tensor(const std::vector<int>& shape,
                   const std::vector<int>& strides) {
  return absl::StrCat(kTensor, "(", std::string(kStorage, sizeof(kStorage) - 1),
                      "0", Text("cpu"), Number(8), "tQ", Number(2),
                      Tuple(shape), Tuple(strides), "\x89NtR");
}

std::string Pickled(const std::string& items) {
  return absl::StrCat("\x80\2}(", items, "u.");
}

TEST(PickledTensorsTest, TensorsOfDictionariesHaveNamesWithDots) {
  const std::string nested = absl::StrCat(
      "ccollections\nOrderedDict\n)R(", Text("hidden.weight"),
      Tensor({2, 3}, {3, 1}), Text("hidden.bias"),
      "ctorch._utils\n_rebuild_parameter\n(", Tensor({2}, {1}), "\x88NtRu");
  ASSERT_OK_AND_ASSIGN(const std::vector<PickledTensor> tensors,
                       PickledTensors(Pickled(absl::StrCat(
                           Text("epoch"), Number(3), Text("model"), nested))));
  ASSERT_EQ(tensors.size(), 2);
  EXPECT_EQ(tensors[0].info,
            (TensorInfo{"model.hidden.weight", ElementType::kFloat32, {2, 3}}));
  EXPECT_EQ(tensors[0].storage, "0");
  EXPECT_EQ(tensors[0].offset, 2);
  EXPECT_TRUE(tensors[0].is_contiguous);
  EXPECT_EQ(tensors[1].info.name, "model.hidden.bias");
}

TEST(PickledTensorsTest, OtherOrdersOfElementsAreSeen) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<PickledTensor> tensors,
      PickledTensors(Pickled(absl::StrCat(Text("a"), Tensor({2, 3}, {1, 2}),
                                          Text("b"), Tensor({1, 3}, {9, 1})))));
  EXPECT_FALSE(tensors[0].is_contiguous);
  EXPECT_TRUE(tensors[1].is_contiguous);
}

TEST(PickledTensorsTest, ModulesAreNoStateDicts) {
  const std::string module = "\x80\2c__main__\nNet\n)\x81}b.";
  EXPECT_THAT(PickledTensors(module).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("torch.save(model.state_dict(), PATH)")));
}

TEST(PickledTensorsTest, WhatHasNoEndIsRefused) {
  // A dictionary in itself.
  EXPECT_THAT(
      PickledTensors(absl::StrCat("\x80\2}q", std::string(1, '\0'), Text("a"),
                                  "h", std::string(1, '\0'), "s."))
          .status(),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("nested too deep")));
}

// A few hundred bytes that would take all memory, or gigabytes of names.
TEST(PickledTensorsTest, ShortPicklesOfMuchAreRefused) {
  const std::string first(1, '\0');
  std::string doubled = absl::StrCat("\x80\2", Text("twice"), "q", first);
  for (int i = 0; i < 64; ++i) {
    absl::StrAppend(&doubled, "h", first, "h", first, "\x93q", first);
  }
  EXPECT_THAT(
      PickledTensors(doubled + ".").status(),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("more than 1024 bytes")));
  const std::string long_key =
      absl::StrCat("X", std::string("\0\x20\0\0", 4), std::string(8192, 'k'));
  EXPECT_THAT(
      PickledTensors(Pickled(absl::StrCat(long_key, Tensor({1}, {1}))))
          .status(),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("more than 4096 bytes")));
  EXPECT_THAT(PickledTensors("\x80\2}" + std::string(5 << 20, 'N')).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("more than 4194304 values")));
  for (const char* instructions : {"\x94", "("}) {
    std::string many = "\x80\2N";
    for (int i = 0; i < 5 << 20; ++i) many += instructions;
    EXPECT_THAT(PickledTensors(many).status(),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("more than 4194304 values")));
  }
  // Many keys of one dictionary of many tensors.
  std::string tensors;
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&tensors, Text(absl::StrCat(i)), Tensor({1}, {1}));
  }
  std::string shared = absl::StrCat("\x80\2}(", tensors, "uq", first, "0}(");
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&shared, "X", std::string("\xa0\x0f\0\0", 4),
                    std::string(3995, 'k'), absl::StrCat(10000 + i), "h",
                    first);
  }
  EXPECT_THAT(PickledTensors(shared + "u.").status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("names of tensors have more than")));
  const std::vector<int> axes(65, 1);
  EXPECT_THAT(
      PickledTensors(Pickled(absl::StrCat(Text("w"), Tensor(axes, axes))))
          .status(),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("has no shape")));
}

TEST(PickledTensorsTest, WhatIsCutOffIsAnErrorAndNothingCrashes) {
  const std::string good =
      Pickled(absl::StrCat(Text("w"), Tensor({2, 3}, {3, 1})));
  ASSERT_OK(PickledTensors(good).status());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(PickledTensors(good.substr(0, size)).ok()) << size;
  }
  for (size_t place = 0; place < good.size(); ++place) {
    for (int bits = 1; bits < 256; ++bits) {
      std::string changed = good;
      changed[place] = static_cast<char>(changed[place] ^ bits);
      PickledTensors(changed).IgnoreError();
    }
  }
}

TEST(PyTorchReaderTest, TensorsOfPyTorchAreRead) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<TensorReader> reader,
                       OpenPyTorch(kFile));
  std::map<std::string, std::string> read;
  for (size_t i = 0; i < reader->tensors().size(); ++i) {
    const TensorInfo& tensor = reader->tensors()[i];
    ASSERT_OK_AND_ASSIGN(const uint64_t bytes, CountBytes(tensor));
    std::string& out = read[tensor.name];
    out.resize(bytes);
    ASSERT_OK(reader->Read(i, 0, absl::MakeSpan(out)));
  }
  const auto bytes_of = [](const auto& values) {
    return std::string(reinterpret_cast<const char*>(values.data()),
                       values.size() * sizeof(values[0]));
  };
  // testdata/make_files.py has the same numbers.
  const std::map<std::string, std::string> expected = {
      {"model.dense/kernel",
       bytes_of(std::vector<float>{1.5f, -2.25f, INFINITY, 0.f, -0.f, 1e-45f})},
      {"model.half",
       bytes_of(std::vector<uint16_t>{0x3c00, 0xb800, 0x7bff, 0x0001})},
      {"model.double", bytes_of(std::vector<double>{1e300, 0.1})},
      {"model.step", bytes_of(std::vector<int64_t>{12})},
      {"model.small", bytes_of(std::vector<int32_t>{-3, 4})},
      {"model.none", ""},
      {"model.view", bytes_of(std::vector<float>{2, 3, 4, 5})},
      {"model.base", bytes_of(std::vector<float>{0, 1, 2, 3, 4, 5})}};
  EXPECT_EQ(read, expected);
}

TEST(PyTorchReaderTest, DamagedFilesAreNamed) {
  ASSERT_OK_AND_ASSIGN(const std::string good, ReadFile(kFile, 1 << 20));
  const std::string path = ::testing::TempDir() + "/damaged.pt";
  for (size_t size = 0; size < good.size(); size += 97) {
    ASSERT_OK(WriteFileDurably(path, good.substr(0, size)));
    EXPECT_THAT(OpenPyTorch(path).status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
  }
  EXPECT_THAT(OpenPyTorch(path + ".none").status(),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace parasol
