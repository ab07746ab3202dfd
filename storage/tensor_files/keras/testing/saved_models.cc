#include "storage/tensor_files/keras/testing/saved_models.h"

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace parasol {

nlohmann::json SavedKerasModel(const std::string& file) {
  const bool is_old = absl::StrContains(file, "3_5_0");
  std::ifstream lines(absl::StrCat(
      kKerasTestData, is_old ? "models_3_5_0.jsonl" : "models.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json model = nlohmann::json::parse(line, nullptr, false);
    for (const auto& name : model["files"]) {
      if (name == file) return model;
    }
  }
  ADD_FAILURE() << file << " is in no line";
  return {};
}

}  // namespace parasol
