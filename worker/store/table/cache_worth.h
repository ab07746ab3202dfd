#ifndef PARASOL_WORKER_STORE_TABLE_CACHE_WORTH_H_
#define PARASOL_WORKER_STORE_TABLE_CACHE_WORTH_H_

#include <cstdint>
#include <optional>

namespace parasol {

// Decides whether it is worth it that a device has the rows of a table that
// were used last. A row that a batch reads and that is not there comes from the
// host, and another one goes back in its place: where too many do, the table is
// better off on the host. Pure: what it says depends on what it was told alone.
//
// The share of rows that were there is taken over a window of batches. A table
// isn't worth it when the share has been low in several windows in a row. One
// that still rises, as while the first rows come, has another window's time.
class CacheWorth {
 public:
  struct Options {
    int batches = 100;  // batches of a window
    int windows = 3;
    // Share below which a window is low; 0: no table leaves. On an H200 two
    // thirds were even with the host.
    double least_share = .5;
    // A share rises if it is larger than the window's before by more than this.
    double rise = .02;
  };

  explicit CacheWorth(const Options& options) : options_(options) {}

  // Counts a batch that has read `rows` distinct rows, of which `misses` were
  // not on the device. One without rows is not counted.
  void Add(int64_t rows, int64_t misses);

  // Returns the share of the last windows when it has been low in all of them;
  // otherwise nothing.
  std::optional<double> LowShare() const;

  // The number of batches that LowShare() is about.
  int batches() const { return options_.batches * options_.windows; }

 private:
  void EndWindow();

  Options options_;
  // The present window.
  int batches_ = 0;
  int64_t rows_ = 0;
  int64_t misses_ = 0;
  // The low windows in a row.
  int low_windows_ = 0;
  double sum_of_shares_ = 0;
  std::optional<double> last_share_;  // share of the window before
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_TABLE_CACHE_WORTH_H_
