#include "tool/exchange/exported_tensors.h"

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/tensor_files/safetensors_reader.h"
#include "storage/tensor_files/safetensors_writer.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

template <typename T>
std::vector<T> Numbers(const std::string& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// Exports the model to a file, and returns its tensors' bytes by their names.
absl::StatusOr<std::map<std::string, std::string>> ExportAndRead(
    const ModelCheckpoint& model, const ExportedTensors::Options& options) {
  const std::string directory = EmptyTestDirectory();
  RETURN_IF_ERROR(model.Write(directory));
  ASSIGN_OR_RETURN(const auto checkpoint,
                   CheckpointReader::Open(model.PathIn(directory)));
  ASSIGN_OR_RETURN(const ExportedTensors tensors,
                   ExportedTensors::Plan(*checkpoint, options));
  const std::string path = directory + "/model.safetensors";
  ASSIGN_OR_RETURN(const auto writer,
                   NewSafetensorsWriter(path, tensors.parts()));
  RETURN_IF_ERROR(tensors.Write(*writer));
  RETURN_IF_ERROR(writer->Finish());
  ASSIGN_OR_RETURN(const auto reader, OpenSafetensors(path));
  std::map<std::string, std::string> bytes;
  for (size_t i = 0; i < reader->tensors().size(); ++i) {
    ASSIGN_OR_RETURN(const uint64_t size, CountBytes(reader->tensors()[i]));
    std::string& of_tensor = bytes[reader->tensors()[i].name];
    of_tensor.resize(size);
    RETURN_IF_ERROR(reader->Read(i, 0, absl::MakeSpan(of_tensor)));
  }
  return bytes;
}

TEST(ExportedTensorsTest, ValuesAndSlotsHaveKerasNames) {
  ASSERT_OK_AND_ASSIGN(auto tensors, ExportAndRead({}, {}));
  EXPECT_THAT(Numbers<int64_t>(tensors["global_step"]), ElementsAre(12));
  EXPECT_THAT(Numbers<int64_t>(tensors["Adam/iter"]), ElementsAre(12));
  EXPECT_THAT(Numbers<float>(tensors["dense/kernel"]),
              ElementsAre(1, -2, 3, 0, 5, -6));
  EXPECT_THAT(Numbers<float>(tensors["Adam/dense/kernel/v"]),
              ElementsAre(0, 0, 0, 0, 0, 2));
  EXPECT_EQ(tensors.size(), 9);
}

TEST(ExportedTensorsTest, RowsLieBesideTheirIds) {
  ASSERT_OK_AND_ASSIGN(auto tensors, ExportAndRead({}, {}));
  // The files of the checkpoint are read in their order: even ids first.
  EXPECT_THAT(Numbers<uint64_t>(tensors["users/ids"]),
              ElementsAre(uint64_t{1} << 63, 7));
  EXPECT_THAT(Numbers<float>(tensors["users/rows"]), ElementsAre(3, 4, 1, 2));
  EXPECT_THAT(Numbers<float>(tensors["Adam/users/rows/v"]),
              ElementsAre(0, 0.5, 0, 0));
}

TEST(ExportedTensorsTest, ASlotOfRowsHasOneColumn) {
  const ModelCheckpoint model = {.users = {{4, {1, 2, 8}}, {7, {3, 4, 9}}},
                                 .users_have_row_slots = true};
  const std::string slot = "RowwiseAdagrad/users/rows/row_accumulator";
  ASSERT_OK_AND_ASSIGN(auto tensors, ExportAndRead(model, {}));
  EXPECT_THAT(Numbers<float>(tensors["users/rows"]), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Numbers<float>(tensors[slot]), ElementsAre(8, 9));
  ASSERT_OK_AND_ASSIGN(tensors, ExportAndRead(model, {.slots = false}));
  EXPECT_THAT(Numbers<float>(tensors["users/rows"]), ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(tensors.contains(slot));
  // A row has 20 bytes, with its id.
  ASSERT_OK_AND_ASSIGN(tensors, ExportAndRead(model, {.part_bytes = 20}));
  EXPECT_THAT(Numbers<float>(tensors[slot + ".part-00001-of-00002"]),
              ElementsAre(9));
}

TEST(ExportedTensorsTest, TableIsCutIntoPartsThatFitTheMemory) {
  ModelCheckpoint model;
  model.users.clear();
  for (uint64_t id = 0; id < 10; id += 2) {
    model.users[id] = {static_cast<float>(id), 0, 0, 0, 0, 0};
  }
  ASSERT_OK_AND_ASSIGN(
      auto tensors, ExportAndRead(model, {.slots = false, .part_bytes = 32}));
  EXPECT_THAT(Numbers<uint64_t>(tensors["users/ids.part-00000-of-00003"]),
              ElementsAre(0, 2));
  EXPECT_THAT(Numbers<uint64_t>(tensors["users/ids.part-00002-of-00003"]),
              ElementsAre(8));
  EXPECT_THAT(Numbers<float>(tensors["users/rows.part-00002-of-00003"]),
              ElementsAre(8, 0));
}

TEST(ExportedTensorsTest, SlotsCanBeLeftOut) {
  ASSERT_OK_AND_ASSIGN(const auto tensors, ExportAndRead({}, {.slots = false}));
  EXPECT_EQ(tensors.size(), 5);
  EXPECT_FALSE(tensors.contains("Adam/dense/kernel/m"));
}

TEST(ExportedTensorsTest, TableWithoutRowsIsThere) {
  ModelCheckpoint model;
  model.users.clear();
  ASSERT_OK_AND_ASSIGN(const auto tensors, ExportAndRead(model, {}));
  EXPECT_THAT(tensors, ::testing::Contains(Pair("users/ids", "")));
}

}  // namespace
}  // namespace parasol
