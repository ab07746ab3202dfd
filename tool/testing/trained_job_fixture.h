#ifndef PARASOL_TOOL_TESTING_TRAINED_JOB_FIXTURE_H_
#define PARASOL_TOOL_TESTING_TRAINED_JOB_FIXTURE_H_

#include <string>

#include "gtest/gtest.h"

namespace parasol {

// Fixture of tests with a small job that a lone worker trains: ratings by users
// of items, a table that has an optimizer of its own, a vocabulary, and two
// dense layers.
class TrainedJobFixture : public ::testing::Test {
 protected:
  static constexpr int kExamples = 200;
  // Rating of example i, in the order of the data.
  static int RatingOf(int i) { return i % 11; }

  // Writes job.textproto and the data.
  TrainedJobFixture();

  // Replaces the job and the data by a job with three named outputs and its
  // data: "rating", which every third example lacks, "kind" of three classes,
  // and "likes_it", a product of two probabilities.
  void WriteJobOfNamedOutputs();

  // Replaces the job and the data by a job with patterns of columns and its
  // data: "x*" of numbers, which the label "xy" matches, too, and "c?" of ids.
  void WriteJobOfPatterns();

  // Returns the path of a file in the test's directory; of the directory
  // itself, if `name` is empty.
  std::string Path(const std::string& name) const;

  // Trains until `steps` steps are done, from the checkpoints that are there.
  void Train(const std::string& checkpoints, int steps);

 private:
  const std::string directory_;
};

}  // namespace parasol

#endif  // PARASOL_TOOL_TESTING_TRAINED_JOB_FIXTURE_H_
