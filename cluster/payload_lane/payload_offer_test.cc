#include "cluster/payload_lane/payload_offer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(PayloadOfferTest, AnOfferIsReadAsItWasWritten) {
  const PayloadOffer offer = {.port = 45123, .secret = DrawPayloadSecret()};
  ASSERT_OK_AND_ASSIGN(const PayloadOffer read,
                       PayloadOffer::Parse(offer.ToString()));
  EXPECT_EQ(read.port, offer.port);
  EXPECT_EQ(read.secret, offer.secret);
  EXPECT_NE(DrawPayloadSecret(), DrawPayloadSecret());
}

TEST(PayloadOfferTest, WhatIsNoOfferIsRefused) {
  const std::string hex(32, 'a');
  for (const std::string& text :
       {std::string(), std::string(kNoPayloadLane), std::string("1"),
        absl::StrCat("0 ", hex), absl::StrCat("65536 ", hex),
        absl::StrCat("-1 ", hex), absl::StrCat("1 ", hex, "a"),
        absl::StrCat("1 ", hex.substr(1), "g"), absl::StrCat("1  ", hex),
        absl::StrCat("1 ", hex, " ")}) {
    EXPECT_THAT(PayloadOffer::Parse(text),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
}

}  // namespace
}  // namespace parasol
