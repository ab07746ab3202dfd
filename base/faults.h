#ifndef PARASOL_BASE_FAULTS_H_
#define PARASOL_BASE_FAULTS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace parasol {

// The faults that a check has found, in the order in which it looked: a check
// that collects them goes on, where one that returns a status stops.
class Faults {
 public:
  // Takes a status, unless it is OK.
  void Add(absl::Status status) {
    if (!status.ok()) all_.push_back(std::move(status));
  }
  // Takes `status`, unless it is OK, with "<where>: " in front of its message.
  void Add(absl::string_view where, const absl::Status& status) {
    if (status.ok()) return;
    all_.push_back(absl::Status(status.code(),
                                absl::StrCat(where, ": ", status.message())));
  }
  void Add(Faults faults) {
    for (absl::Status& fault : faults.all_) all_.push_back(std::move(fault));
  }

  bool empty() const { return all_.empty(); }
  const std::vector<absl::Status>& all() const { return all_; }
  // Returns the first fault; OK if there is none.
  absl::Status first() const {
    return all_.empty() ? absl::OkStatus() : all_.front();
  }

 private:
  std::vector<absl::Status> all_;
};

}  // namespace parasol

#endif  // PARASOL_BASE_FAULTS_H_
