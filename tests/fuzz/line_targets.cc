#include "tests/fuzz/line_targets.h"

#include <string>

#include "base/log.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "cluster/progress/training_journal.h"
#include "deploy/local/evaluation_line.h"
#include "deploy/local/last_error.h"
#include "tests/fuzz/readers/scratch_folder.h"

namespace parasol {
namespace {

void FeedJournal(absl::string_view input) {
  static const ScratchFolder folder;
  folder.Write("training.jsonl", input);
  const auto journal = TrainingJournal::Open(
      {.checkpoint_directory = folder.path(), .run_id = "a", .first_step = 20});
  CHECK(journal.ok()) << journal.status();
  folder.Write("evaluations.jsonl", input);
  const auto evaluations = ReadEvaluations(
      folder.path(), "a", [](const Evaluation&) { return true; });
  CHECK(evaluations.ok()) << evaluations.status();
  LastEvaluationLine(input);
  LastError(input, "worker");
}

std::vector<std::string> JournalSeeds() {
  return {
      R"({"global_step":10,"epoch":0.5,"loss":0.25,"learning_rate":0.001,)"
      R"("examples_per_second":3000.0,"seconds":1.0,"run_id":"a"})"
      "\n{\"global_",
      R"({"global_step":1200,"accuracy":0.9763,"loss":0.25,"examples":10000,)"
      R"("seconds":0.41,"checkpoint":"/ckpt/ckpt-000000001200","final":true,)"
      R"("run_id":"a","chief_epoch":3})"
      "\n",
      "E1120 23:17:03.123456 worker/1 loop.cc:42] no space left\n"
      R"({"severity":"ERROR","message":"no space left"})"
      "\nworker: no space left\n"};
}

}  // namespace

std::vector<FuzzTarget> LineTargets() {
  return {{"json_lines", FeedJournal, JournalSeeds}};
}

}  // namespace parasol
