// Compares the pages of docs/job with the messages of proto/job.proto that a
// job is made of, loads the whole jobs of README.md and docs/job.md, and
// looks up each field that docs/coming_from_keras_and_pytorch.md names: a path
// in backticks in the last cell of a table's row. The form of docs/job:
//
//   ### Dense                 a message of proto/job.proto; its section ends at
//                             the next heading of any level
//   | `units` | int64 | …     a line that begins with "| `" in such a section:
//                             the row of the field between the two backticks

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_matchers.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using testing::Contains;

// Inserts the full names of the fields of `message` and of all messages that
// these are made of: "parasol.job.Dense.units".
void InsertFields(const Descriptor& message, std::set<std::string>& fields) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const bool is_new = fields.emplace(field.full_name()).second;
    if (is_new && field.message_type() != nullptr) {
      InsertFields(*field.message_type(), fields);
    }
  }
}

std::set<std::string> FieldsOfAJob() {
  std::set<std::string> fields;
  InsertFields(*job::Job::descriptor(), fields);
  return fields;
}

// Counts the rows that `text` has for each field, by its full name.
void CountRows(std::istream& text, std::map<std::string, int>& rows) {
  std::string message;  // empty outside of a message's section
  bool in_code = false;
  for (std::string line; std::getline(text, line);) {
    if (absl::StartsWith(line, "```")) in_code = !in_code;
    if (in_code) continue;
    absl::string_view rest = line;
    if (absl::StartsWith(rest, "#")) {
      message = absl::ConsumePrefix(&rest, "### ") ? std::string(rest) : "";
    } else if (!message.empty() && absl::ConsumePrefix(&rest, "| `")) {
      const absl::string_view field = rest.substr(0, rest.find('`'));
      ++rows[absl::StrCat("parasol.job.", message, ".", field)];
    }
  }
}

std::map<std::string, int> RowsOfThePages() {
  std::map<std::string, int> rows;
  int pages = 0;
  for (const auto& page : std::filesystem::directory_iterator("docs/job")) {
    std::ifstream text(page.path());
    CountRows(text, rows);
    ++pages;
  }
  EXPECT_EQ(pages, 6);
  return rows;
}

// Returns the first block of job text in a page.
std::string FirstJobIn(const std::string& path) {
  std::ifstream page(path);
  std::string text;
  bool in_job = false;
  for (std::string line; std::getline(page, line);) {
    if (in_job && line == "```") break;
    if (in_job) absl::StrAppend(&text, line, "\n");
    if (line == "```textproto") in_job = true;
  }
  return text;
}

TEST(JobDocumentTest, WholeJobsAreWhole) {
  for (const std::string page : {"README.md", "docs/job.md"}) {
    ASSERT_OK_AND_ASSIGN(job::Job job, ParseJob(FirstJobIn(page), page));
    EXPECT_OK(LoadJob(std::move(job), {})) << page;
  }
}

TEST(JobDocumentTest, EveryFieldHasOneRow) {
  const std::map<std::string, int> rows = RowsOfThePages();
  for (const std::string& field : FieldsOfAJob()) {
    const auto row = rows.find(field);
    EXPECT_EQ(row == rows.end() ? 0 : row->second, 1)
        << "rows of " << field << " in docs/job";
  }
}

TEST(JobDocumentTest, EveryRowIsThatOfAField) {
  const std::set<std::string> fields = FieldsOfAJob();
  for (const auto& [field, count] : RowsOfThePages()) {
    EXPECT_THAT(fields, Contains(field))
        << "docs/job has a row of a field that a job does not have";
  }
}

TEST(JobDocumentTest, FieldsOfNestedMessagesAreFields) {
  const std::set<std::string> fields = FieldsOfAJob();
  EXPECT_THAT(fields, Contains("parasol.job.Job.model"));
  EXPECT_THAT(fields, Contains("parasol.job.RandomNormal.stddev"));
}

TEST(JobDocumentTest, RowsBelongToTheHeadingAboveThem) {
  std::istringstream text(
      "| `before` | |\n### Job\n| field | type |\n|---|---|\n| `name` | string "
      "|\n| `name` | again |\n\n```\n| `code` |\n```\n### Model\n| `layer` | "
      "|\n## End\n| `after` | |\n");
  std::map<std::string, int> rows;
  CountRows(text, rows);
  EXPECT_EQ(rows, (std::map<std::string, int>{{"parasol.job.Job.name", 2},
                                              {"parasol.job.Model.layer", 1}}));
}

// The paths in a row's last cell: "train.batch_size", "seed".
std::vector<std::string> PathsIn(const std::string& row) {
  static const std::regex code("`([a-z][a-z0-9_]*(?:\\.[a-z][a-z0-9_]*)*)`");
  const std::vector<std::string> cells = absl::StrSplit(row, " | ");
  std::vector<std::string> paths;
  const std::string& cell = cells.back();
  for (std::sregex_iterator found(cell.begin(), cell.end(), code), end;
       found != end; ++found) {
    paths.push_back((*found)[1]);
  }
  return paths;
}

// True if the path is one of a job's. A word alone is one only if it is a field
// of Job: others are words of the text.
bool IsField(const std::string& path) {
  const Descriptor* message = job::Job::descriptor();
  const std::vector<std::string> names = absl::StrSplit(path, '.');
  if (names.size() == 1) return true;
  for (const std::string& name : names) {
    if (message == nullptr) return false;
    const FieldDescriptor* const field = message->FindFieldByName(name);
    if (field == nullptr) return false;
    message = field->message_type();
  }
  return true;
}

TEST(ComingFromDocumentTest, EveryFieldIsThere) {
  std::ifstream document("docs/coming_from_keras_and_pytorch.md");
  int paths = 0;
  for (std::string line; std::getline(document, line);) {
    if (line.empty() || line[0] != '|') continue;
    for (const std::string& path : PathsIn(line)) {
      if (path.find(".json") != std::string::npos) continue;
      ++paths;
      EXPECT_TRUE(IsField(path)) << path << " in " << line;
    }
  }
  EXPECT_GT(paths, 100);
}

TEST(ComingFromDocumentTest, OtherPathsAreNone) {
  EXPECT_FALSE(IsField("optimizer.adam.rate"));
  EXPECT_FALSE(IsField("seed.more"));
  EXPECT_TRUE(IsField("model.input.ids.column.hash.buckets"));
  EXPECT_THAT(PathsIn("| `Keras.a` | `x` and `train.batch_size`, `Other` |"),
              testing::ElementsAre("x", "train.batch_size"));
}

}  // namespace
}  // namespace parasol
