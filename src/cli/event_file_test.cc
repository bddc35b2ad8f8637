#include "cli/event_file.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TEST(EventFile, HasTheCrcOfThePublishedExamples) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4
}

// As TensorFlow's own writer begins a file; what is inside is read by Python in runs_test.py.
TEST(EventFile, BeginsWithItsVersion) {
  const EventFile file(0);
  const std::string event(
      "\x09\0\0\0\0\0\0\0\0\x1A\x0D"
      "brain.Event:2",
      24);
  EXPECT_EQ(file.bytes().substr(0, 8), std::string("\x18\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(file.bytes().substr(8, 4), std::string("\xA3\x7F\x4B\x22", 4));
  EXPECT_EQ(file.bytes().substr(12, 24), event);
  EXPECT_EQ(file.bytes().size(), 40U);
}

}  // namespace
}  // namespace muster::cli
