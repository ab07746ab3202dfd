#include "tool/checkpoint/inspection.h"

#include <fstream>

#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using ::testing::HasSubstr;

TEST(InspectionTest, StatisticsAreOfTheValueAndOfEachSlot) {
  const std::string directory = EmptyTestDirectory();
  ASSERT_OK(ModelCheckpoint().Write(directory));
  ASSERT_OK_AND_ASSIGN(const Inspection inspection, Inspect(directory));
  const nlohmann::json json = nlohmann::json::parse(ToJson(inspection));
  EXPECT_EQ(json["global_step"], 12);
  EXPECT_EQ(json["job"], "ratings");
  EXPECT_EQ(json["format_version"], 2);
  const nlohmann::json& kernel = json["variables"][0];
  EXPECT_EQ(kernel["name"], "dense/kernel");
  EXPECT_EQ(kernel["shape"], nlohmann::json({2, 3}));
  EXPECT_EQ(kernel["updates"], 12);
  EXPECT_EQ(kernel["value"]["elements"], 6);
  EXPECT_EQ(kernel["value"]["min"], -6);
  EXPECT_EQ(kernel["value"]["max"], 5);
  EXPECT_EQ(kernel["value"]["zeros"], 1);
  EXPECT_EQ(kernel["slots"]["v"]["max"], 2);
  EXPECT_EQ(json["files"].size(), 2);
}

TEST(InspectionTest, RowsOfAllFilesCountTogether) {
  const std::string directory = EmptyTestDirectory();
  ASSERT_OK(ModelCheckpoint().Write(directory));
  ASSERT_OK_AND_ASSIGN(const Inspection inspection, Inspect(directory));
  const nlohmann::json json = nlohmann::json::parse(ToJson(inspection));
  const nlohmann::json& users = json["tables"][0];
  EXPECT_EQ(users["rows"], 2);
  EXPECT_EQ(users["width"], 2);
  EXPECT_EQ(users["value"]["elements"], 4);
  EXPECT_EQ(users["value"]["mean"], 2.5);
  EXPECT_EQ(users["slots"]["m"]["max"], 0);
  EXPECT_EQ(users["slots"]["v"]["max"], 0.5);
}

TEST(InspectionTest, ASlotOfRowsHasAnElementForEachRow) {
  const std::string directory = EmptyTestDirectory();
  const ModelCheckpoint model = {.users = {{4, {1, 2, 8}}, {7, {3, 4, 9}}},
                                 .users_have_row_slots = true};
  ASSERT_OK(model.Write(directory));
  ASSERT_OK_AND_ASSIGN(const Inspection inspection, Inspect(directory));
  const nlohmann::json json = nlohmann::json::parse(ToJson(inspection));
  EXPECT_EQ(json["format_version"], 5);
  const nlohmann::json& users = json["tables"][0];
  EXPECT_EQ(users["rows"], 2);
  EXPECT_EQ(users["value"]["elements"], 4);
  EXPECT_EQ(users["value"]["max"], 4);
  EXPECT_EQ(users["slots"]["row_accumulator"]["elements"], 2);
  EXPECT_EQ(users["slots"]["row_accumulator"]["min"], 8);
  EXPECT_EQ(users["slots"]["row_accumulator"]["max"], 9);
}

TEST(InspectionTest, TextNamesWhatIsThere) {
  const std::string directory = EmptyTestDirectory();
  ASSERT_OK(ModelCheckpoint().Write(directory));
  ASSERT_OK_AND_ASSIGN(const Inspection inspection, Inspect(directory));
  const std::string text = ToText(inspection);
  for (const char* part :
       {"step        12\n", "job         ratings\n",
        "run         0123456789abcdef\n", "2027-01-15 08:00:00 UTC",
        "dense/kernel", "[2,3]", "  slot m", "users", "ps-1.sst"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(InspectionTest, ANumberThatIsNotFiniteIsNullInJson) {
  const std::string directory = EmptyTestDirectory();
  ModelCheckpoint model;
  model.users.clear();
  ASSERT_OK(model.Write(directory));
  ASSERT_OK_AND_ASSIGN(const Inspection inspection, Inspect(directory));
  const nlohmann::json json = nlohmann::json::parse(ToJson(inspection));
  EXPECT_TRUE(json["tables"][0]["value"]["mean"].is_null());
}

TEST(InspectionTest, AlteredByteIsFoundAndItsFileNamed) {
  const std::string directory = EmptyTestDirectory();
  ASSERT_OK(ModelCheckpoint().Write(directory));
  const std::string path = ModelCheckpoint().PathIn(directory) + "/ps-0.sst";
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(60);
  file.put('\x7f');
  file.close();
  EXPECT_THAT(Inspect(directory),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ps-0.sst")));
}

}  // namespace
}  // namespace parasol
