#ifndef PARASOL_CLUSTER_CHECKPOINT_MODEL_TESTING_MODEL_CHECKPOINT_H_
#define PARASOL_CLUSTER_CHECKPOINT_MODEL_TESTING_MODEL_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace parasol {

// A small model with a variable, Adam's slots and a sparse table, to be written
// as a checkpoint.
struct ModelCheckpoint {
  int64_t step = 12;
  std::string job_name = "ratings";
  std::string run_id = "0123456789abcdef";
  bool is_final = false;
  std::vector<int64_t> shape = {2, 3};
  std::vector<float> kernel = {1, -2, 3, 0, 5, -6};
  std::vector<float> m = {0, 0, 0, 0, 0, 1};
  std::vector<float> v = {0, 0, 0, 0, 0, 2};
  // Rows of table "users" of width 2, each with its slots m and v.
  std::map<uint64_t, std::vector<float>> users = {
      {7, {1, 2, 0, 0, 0, 0}}, {uint64_t{1} << 63, {3, 4, 0, 0, 0, 0.5}}};
  // True: rowwise_adagrad updates them, and each has one slot of one element.
  bool users_have_row_slots = false;

  // Writes the checkpoint into a directory of checkpoints, with the rows spread
  // over two files.
  absl::Status Write(const std::string& directory) const;
  // Returns the path that Write() gives the checkpoint.
  std::string PathIn(const std::string& directory) const;
};

// Returns an empty directory for the test that runs.
std::string EmptyTestDirectory();

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_MODEL_TESTING_MODEL_CHECKPOINT_H_
