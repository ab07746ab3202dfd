#include "worker/store/table/row_seats.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <list>
#include <random>
#include <set>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;

constexpr int32_t kNone = RowSeats::kNone;

struct Taken {
  bool fits = false;
  std::vector<int32_t> seats;
  std::vector<RowSeats::Change> changes;
};

Taken Take(RowSeats& seats, const std::vector<int32_t>& rows) {
  Taken taken;
  taken.seats.resize(rows.size());
  taken.fits = seats.Take(rows, absl::MakeSpan(taken.seats), taken.changes);
  return taken;
}

TEST(RowSeatsTest, TheFirstRowsHaveTheSeatsOfTheirNumbers) {
  RowSeats seats(/*seats=*/4, /*rows=*/3);
  const Taken taken = Take(seats, {2, 0});
  EXPECT_TRUE(taken.fits);
  EXPECT_THAT(taken.seats, ElementsAre(2, 0));
  EXPECT_THAT(taken.changes, IsEmpty());
  EXPECT_EQ(seats.seat_of(3), kNone);
  EXPECT_EQ(seats.row_of(3), kNone);
}

TEST(RowSeatsTest, FreeSeatsAreGivenFirst) {
  RowSeats seats(/*seats=*/4, /*rows=*/2);
  EXPECT_THAT(Take(seats, {7, 1, 5}).changes,
              ElementsAre(FieldsAre(2, 7, kNone), FieldsAre(3, 5, kNone)));
  EXPECT_THAT(Take(seats, {8}).changes, ElementsAre(FieldsAre(0, 8, 0)));
}

TEST(RowSeatsTest, ARowThatWasUsedAgainHasASecondChance) {
  RowSeats seats(/*seats=*/4, /*rows=*/4);
  Take(seats, {0, 2});
  Take(seats, {});
  EXPECT_THAT(Take(seats, {4, 5}).changes,
              ElementsAre(FieldsAre(1, 4, 1), FieldsAre(3, 5, 3)));
  Take(seats, {});
  EXPECT_THAT(Take(seats, {6, 7}).changes,
              ElementsAre(FieldsAre(0, 6, 0), FieldsAre(1, 7, 4)))
      << "the hand has taken the chance of row 0 before";
}

TEST(RowSeatsTest, ARowOfTheBatchBeforeLeavesOnlyIfNoOtherIsLeft) {
  RowSeats seats(/*seats=*/4, /*rows=*/4);
  Take(seats, {0, 1, 2});
  EXPECT_THAT(Take(seats, {4}).changes, ElementsAre(FieldsAre(3, 4, 3)));
  EXPECT_THAT(Take(seats, {5, 6, 7, 8}).seats,
              testing::UnorderedElementsAre(0, 1, 2, 3));
}

TEST(RowSeatsTest, ABatchThatDoesNotFitChangesNothing) {
  RowSeats seats(/*seats=*/2, /*rows=*/2);
  EXPECT_FALSE(Take(seats, {0, 1, 2}).fits);
  EXPECT_EQ(seats.row_of(0), 0);
  EXPECT_EQ(seats.row_of(1), 1);
  EXPECT_THAT(Take(seats, {2, 1}).changes, ElementsAre(FieldsAre(0, 2, 0)));
}

TEST(RowSeatsTest, FewerSeatsLeaveTheOthersRowsWithoutOne) {
  RowSeats seats(/*seats=*/4, /*rows=*/4);
  seats.Resize(2);
  EXPECT_EQ(seats.seat_of(1), 1);
  EXPECT_EQ(seats.seat_of(2), kNone);
  EXPECT_EQ(seats.taken(), 2);
  EXPECT_FALSE(Take(seats, {1, 2, 3}).fits);
  EXPECT_THAT(Take(seats, {1, 3}).changes, ElementsAre(FieldsAre(0, 3, 0)));
}

TEST(RowSeatsTest, MoreSeatsAreFree) {
  RowSeats seats(/*seats=*/2, /*rows=*/1);
  seats.Resize(4);
  EXPECT_EQ(seats.seat_of(0), 0);
  EXPECT_EQ(seats.taken(), 1);
  EXPECT_THAT(Take(seats, {5, 6, 7, 0}).changes,
              ElementsAre(FieldsAre(1, 5, kNone), FieldsAre(2, 6, kNone),
                          FieldsAre(3, 7, kNone)));
}

// A queue of rows in the order in which the hand comes to them: one that stays
// goes to its end.
class Model {
 public:
  explicit Model(size_t seats) : seats_(seats) {}

  // Returns the rows that leave, in order.
  std::vector<int32_t> Take(const std::set<int32_t>& rows) {
    std::vector<int32_t> missing;
    for (const int32_t row : rows) {
      const auto at = Find(row);
      if (at == queue_.end()) {
        missing.push_back(row);
      } else {
        at->was_used_again = true;
      }
    }
    size_t others = 0;
    for (const Entry& entry : queue_) {
      others += !rows.contains(entry.row) && !last_.contains(entry.row);
    }
    const bool spares_last =
        missing.size() <= others + (seats_ - queue_.size());
    std::vector<int32_t> left;
    for (const int32_t row : missing) {
      while (queue_.size() == seats_) {
        const Entry first = queue_.front();
        queue_.pop_front();
        if (rows.contains(first.row) ||
            (spares_last && last_.contains(first.row))) {
          queue_.push_back(first);
        } else if (first.was_used_again) {
          queue_.push_back({first.row, false});
        } else {
          left.push_back(first.row);
        }
      }
      queue_.push_back({row, false});
    }
    last_ = rows;
    return left;
  }

 private:
  struct Entry {
    int32_t row;
    bool was_used_again;
  };

  std::list<Entry>::iterator Find(int32_t row) {
    return std::find_if(queue_.begin(), queue_.end(),
                        [row](const Entry& entry) { return entry.row == row; });
  }

  const size_t seats_;
  std::list<Entry> queue_;
  std::set<int32_t> last_;
};

// Rows of a batch: small numbers are frequent.
std::set<int32_t> DrawRows(int32_t most, std::mt19937& random) {
  std::set<int32_t> rows;
  const size_t count = random() % (most + 1);
  while (rows.size() < count) {
    const int32_t range = 1 << (random() % 8);
    rows.insert(static_cast<int32_t>(random() % (range + most)));
  }
  return rows;
}

TEST(RowSeatsTest, RowsLeaveAsThoseOfAQueueWithSecondChances) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const int32_t size = 1 + random() % 20;
    RowSeats seats(size, /*rows=*/0);
    Model model(size);
    std::vector<int32_t> row_of(size, kNone);
    for (int batch = 0; batch < 40; ++batch) {
      const std::set<int32_t> rows = DrawRows(size, random);
      const std::vector<int32_t> numbers(rows.begin(), rows.end());
      const Taken taken = Take(seats, numbers);
      ASSERT_TRUE(taken.fits);
      std::vector<int32_t> left;
      for (const RowSeats::Change& change : taken.changes) {
        ASSERT_EQ(row_of[change.seat], change.out);
        ASSERT_FALSE(rows.contains(change.out));
        row_of[change.seat] = change.in;
        if (change.out != kNone) left.push_back(change.out);
      }
      ASSERT_EQ(left, model.Take(rows));
      for (size_t i = 0; i < numbers.size(); ++i) {
        ASSERT_EQ(row_of[taken.seats[i]], numbers[i]);
        ASSERT_EQ(seats.seat_of(numbers[i]), taken.seats[i]);
      }
      for (int32_t seat = 0; seat < size; ++seat) {
        ASSERT_EQ(seats.row_of(seat), row_of[seat]);
      }
      ASSERT_EQ(seats.taken(),
                size - std::count(row_of.begin(), row_of.end(), kNone));
    }
  }
}

}  // namespace
}  // namespace parasol
