#ifndef PARASOL_TESTS_BENCHMARK_CLICK_LOG_CLICK_LOG_H_
#define PARASOL_TESTS_BENCHMARK_CLICK_LOG_CLICK_LOG_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace parasol::bench {

// A log of clicks that is drawn, day by day, and whose truth is known: the
// probability of each click is a function of its ids. As in logs of real
// services, few ids are in most lines, most ids are in few, and each day brings
// ids that were not there before.
//
// A line has a user, an item, a site and an hour. Whether it is clicked follows
// the logit of `Probability()`: what the user, the item and the site add, and
// how well user and item fit each other, which no linear model sees. Equal
// options give equal lines on every machine.
class ClickLog {
 public:
  struct Options {
    int64_t examples_per_day = 200'000;
    // Exponent of Zipf's law, above 1: the id of rank r is drawn with a share
    // of r^-exponent.
    double exponent = 1.1;
    // Share of the lines whose user, and likewise item, first appears that day.
    double new_share = .3;
    uint64_t seed = 1;
  };
  // Number of ids of the first day, and of those that each day adds, by field.
  static constexpr int kFields = 3;  // user, item, site
  static constexpr std::array<int64_t, kFields> kFirst = {4'000'000, 1'000'000,
                                                          20'000};
  static constexpr std::array<int64_t, kFields> kEachDay = {1'000'000, 200'000,
                                                            500};

  struct Line {
    std::array<uint64_t, kFields> ids = {};
    int hour = 0;
    double probability = 0;
    bool clicked = false;
  };

  explicit ClickLog(const Options& options) : options_(options) {}

  // Returns line `number` of `day`, counted from 0.
  Line At(int day, int64_t number) const;

  // Returns the probability of a click. Its logit has a mean of about -1.5.
  static double Probability(const std::array<uint64_t, kFields>& ids, int hour,
                            uint64_t seed);

 private:
  const Options options_;
};

// Returns the area under the ROC curve of `probability` against the clicks of
// these lines: no model's can be expected to be larger. Ties count half. NaN if
// all lines were clicked, or none.
double BestAuc(const std::vector<ClickLog::Line>& lines);

}  // namespace parasol::bench

#endif  // PARASOL_TESTS_BENCHMARK_CLICK_LOG_CLICK_LOG_H_
