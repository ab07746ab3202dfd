#include "cluster/payload_lane/payload_offer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::HasSubstr;

TEST(PayloadOfferTest, AnOfferIsReadAsItWasWritten) {
  const PayloadOffer offer = PayloadOffer::Draw(45123);
  ASSERT_OK_AND_ASSIGN(const PayloadOffer read,
                       PayloadOffer::Parse(offer.ToString()));
  EXPECT_EQ(read.port, offer.port);
  EXPECT_EQ(read.id, offer.id);
  EXPECT_EQ(read.secret, offer.secret);
  EXPECT_NE(PayloadOffer::Draw(45123).id, offer.id);
  EXPECT_NE(PayloadOffer::Draw(45123).secret, offer.secret);
}

TEST(PayloadOfferTest, WhatIsNoOfferIsRefused) {
  const std::string hex(32, 'a');
  const std::string both = absl::StrCat(hex, " ", hex);
  for (const std::string& text :
       {std::string(), std::string(kNoPayloadLane), std::string("1"),
        absl::StrCat("1 ", hex), absl::StrCat("0 ", both),
        absl::StrCat("65536 ", both), absl::StrCat("-1 ", both),
        absl::StrCat("1 ", both, "a"), absl::StrCat("1 ", both.substr(1), "g"),
        absl::StrCat("1  ", both), absl::StrCat("1 ", both, " ")}) {
    EXPECT_THAT(
        PayloadOffer::Parse(text),
        StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr(hex))))
        << text;
  }
}

}  // namespace
}  // namespace parasol
