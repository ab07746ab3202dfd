#include "cluster/progress/followed_text.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/shown_text.h"

namespace parasol {
namespace {

std::string Seconds(const google::protobuf::Duration& time) {
  return absl::FormatDuration(absl::Seconds(time.seconds()));
}

}  // namespace

std::string WaitForData(const wire::FollowedData& data) {
  return absl::StrCat("waits for data in ", data.pattern(), ", since ",
                      Seconds(data.waited()));
}

std::string FilesOfData(const wire::FollowedData& data) {
  std::string text =
      absl::StrCat(data.files(), data.files() == 1 ? " file" : " files");
  if (!data.newest().empty()) {
    absl::StrAppend(&text, ", the newest ", ShownText(data.newest()));
    if (data.has_newest_age()) {
      absl::StrAppend(&text, " ", Seconds(data.newest_age()), " ago");
    }
  }
  absl::StrAppend(
      &text, "; ", data.waiting_records(),
      data.waiting_records() == 1 ? " record waits" : " records wait");
  if (data.waiting_files() > 0) {
    absl::StrAppend(&text, ", and ", data.waiting_files(),
                    data.waiting_files() == 1 ? " file" : " files");
  }
  if (data.skipped_files() > 0) {
    absl::StrAppend(&text, "; ", data.skipped_files(),
                    " left out, the last: ", data.skipped());
  }
  return text;
}

}  // namespace parasol
