#include "ml/input/arrow/arrow_type.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/library/arrow_library.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

using Kind = ArrowType::Kind;

ArrowSchema Schema(const char* format) {
  ArrowSchema schema = {};
  schema.format = format;
  return schema;
}

ArrowType Of(const char* format) { return ArrowTypeOf(Schema(format)); }

ArrowType ListOf(const char* list, const char* format) {
  ArrowSchema child = Schema(format);
  ArrowSchema* const children[] = {&child};
  ArrowSchema schema = Schema(list);
  schema.n_children = 1;
  schema.children = const_cast<ArrowSchema**>(children);
  return ArrowTypeOf(schema);
}

TEST(ArrowTypeTest, FormatsOfTheInterfaceAreNamed) {
  for (const auto& [format, name] :
       std::vector<std::pair<const char*, std::string>>{
           {"l", "int64"},
           {"C", "uint8"},
           {"e", "float16"},
           {"vu", "string_view"},
           {"d:10,2", "decimal(10, 2)"},
           {"d:10,2,64", "decimal(10, 2)"},
           {"w:4", "fixed_size_binary(4)"}}) {
    EXPECT_EQ(Of(format).name, name);
    EXPECT_TRUE(Of(format).is_readable()) << format;
  }
  EXPECT_EQ(Of("d:10,2").scale, 2);
  EXPECT_EQ(ListOf("+l", "g").name, "list<float64>");
  EXPECT_EQ(ListOf("+w:12", "f").name, "list<float32>[12]");
  EXPECT_EQ(ListOf("+w:12", "f").list_values, 12);
}

TEST(ArrowTypeTest, OthersAreNamedButNotRead) {
  for (const auto& [format, name] :
       std::vector<std::pair<const char*, std::string>>{
           {"tsu:UTC", "timestamp"},
           {"tdD", "date32"},
           {"+s", "struct"},
           {"+m", "map"},
           {"+vl", "list view"},
           {"d:50,2,256", "decimal(50, 2)"},
           {"d:", "decimal"},
           {"?", "?"},
           {"", ""}}) {
    EXPECT_EQ(Of(format).name, name);
    EXPECT_FALSE(Of(format).is_readable()) << format;
  }
  EXPECT_EQ(ListOf("+l", "+l").name, "list<list>");
  EXPECT_FALSE(ListOf("+l", "+l").is_readable());
}

TEST(ArrowTypeTest, ADictionaryIsOfItsValues) {
  ArrowSchema values = Schema("u");
  ArrowSchema schema = Schema("c");
  schema.dictionary = &values;
  const ArrowType type = ArrowTypeOf(schema);
  EXPECT_EQ(type.name, "dictionary<string>");
  EXPECT_EQ(type.kind, Kind::kText);
  EXPECT_EQ(type.index, Kind::kInt8);
  schema.format = "f";
  EXPECT_FALSE(ArrowTypeOf(schema).is_readable());
}

TEST(ArrowTypeTest, TextsAreTextsAndNumbersAreOfOneType) {
  EXPECT_TRUE(IsSameColumn(Of("u"), Of("Z")));
  EXPECT_TRUE(IsSameColumn(Of("u"), Of("vu")));
  EXPECT_TRUE(IsSameColumn(Of("n"), Of("i")));
  EXPECT_TRUE(IsSameColumn(ListOf("+l", "i"), ListOf("+w:3", "i")));
  EXPECT_TRUE(IsSameColumn(Of("d:10,2"), Of("d:9,3,64")));
  EXPECT_FALSE(IsSameColumn(Of("i"), Of("l")));
  EXPECT_FALSE(IsSameColumn(Of("i"), ListOf("+l", "i")));
  EXPECT_FALSE(IsSameColumn(Of("u"), Of("l")));
  EXPECT_FALSE(IsSameColumn(ListOf("+l", "u"), ListOf("+l", "i")));
}

TEST(ArrowLibraryTest, IsLookedForBesideTheProgramAtHomeAndInUsrLocal) {
  EXPECT_THAT(ArrowFolders("/named", "/usr/lib/parasol/ps/ps", "/home/a"),
              ElementsAre("/named"));
  EXPECT_THAT(
      ArrowFolders("", "/usr/lib/parasol/worker/worker", "/home/a"),
      ElementsAre("/usr/lib/parasol/arrow", "/home/a/.local/lib/parasol/arrow",
                  "/usr/local/lib/parasol/arrow"));
  EXPECT_THAT(ArrowFolders("", "/src/bazel-bin/worker/worker", ""),
              ElementsAre("/usr/local/lib/parasol/arrow"));
}

}  // namespace
}  // namespace parasol
