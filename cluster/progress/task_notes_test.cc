#include "cluster/progress/task_notes.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A training with two workers.
wire::JobStatus Training() {
  wire::JobStatus status;
  status.set_phase(wire::TRAINING);
  for (const int index : {0, 1}) {
    wire::TaskStatus& task = *status.add_task();
    task.mutable_task()->set_role("worker");
    task.mutable_task()->set_index(index);
    task.set_alive(true);
  }
  return status;
}

class TaskNotesTest : public testing::Test {
 protected:
  std::vector<std::string> Lines(const wire::JobStatus& status) {
    std::vector<std::string> lines;
    for (const TaskNotes::Note& note : notes_.Notes(status)) {
      lines.push_back(note.line);
    }
    return lines;
  }

  TaskNotes notes_;
};

TEST_F(TaskNotesTest, TwoProcessesOfOneTaskAreAWarningOnce) {
  wire::JobStatus status = Training();
  status.mutable_task(0)->set_doubled("two processes run as it: a, b");
  const std::vector<TaskNotes::Note> notes = notes_.Notes(status);
  ASSERT_EQ(notes.size(), 1);
  EXPECT_EQ(notes[0].line,
            "worker/0: two processes run as it: a, b; run one process for each "
            "task of TF_CONFIG");
  EXPECT_TRUE(notes[0].is_warning);
  EXPECT_THAT(Lines(status), IsEmpty());
  EXPECT_THAT(Lines(Training()), IsEmpty());
  EXPECT_EQ(Lines(status).size(), 1) << "again";
}

TEST_F(TaskNotesTest, ASlowWorkerIsNamedOnceAndOnceWhenItIsOver) {
  EXPECT_THAT(Lines(Training()), IsEmpty());
  wire::JobStatus status = Training();
  status.mutable_task(1)->set_slow("not heard for 6s");
  EXPECT_THAT(Lines(status), ElementsAre("worker/1 is slow: not heard for 6s"));
  status.mutable_task(1)->set_slow("not heard for 7s");
  EXPECT_THAT(Lines(status), IsEmpty());
  EXPECT_THAT(Lines(Training()), ElementsAre("worker/1 is no longer slow"));
  EXPECT_THAT(Lines(Training()), IsEmpty());
}

TEST_F(TaskNotesTest, ALostWorkerIsNotQuickAgain) {
  wire::JobStatus status = Training();
  status.mutable_task(1)->set_slow("not heard for 6s");
  Lines(status);
  status = Training();
  status.mutable_task(1)->set_alive(false);
  EXPECT_THAT(Lines(status), IsEmpty());
}

TEST_F(TaskNotesTest, TheEndOfTheJobSaysNothingOfASlowOne) {
  wire::JobStatus status = Training();
  status.mutable_task(1)->set_slow("not heard for 6s");
  Lines(status);
  status = Training();
  status.set_phase(wire::FINISHING);
  EXPECT_THAT(Lines(status), IsEmpty());
}

TEST_F(TaskNotesTest, AnAbsentTaskIsNamedOnceAndWhenItComes) {
  wire::JobStatus status = Training();
  status.mutable_task(1)->set_alive(false);
  status.add_absent_task()->set_task("worker/1");
  EXPECT_THAT(Lines(status),
              ElementsAre("worker/1 has not come: the training goes on without "
                          "it; look at its log"));
  EXPECT_THAT(Lines(status), IsEmpty());
  EXPECT_THAT(Lines(Training()), ElementsAre("worker/1 is there"));
  status.mutable_absent_task(0)->set_was_there(true);
  EXPECT_THAT(Lines(status),
              ElementsAre("worker/1 is gone: the training goes on without it; "
                          "look at its log"));
}

}  // namespace
}  // namespace parasol
