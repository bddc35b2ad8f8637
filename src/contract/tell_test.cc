#include "contract/tell.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "contract/signals.h"

namespace muster::contract {
namespace {

TEST(Tell, EachKindSurvivesItsCodec) {
  for (const Tell& tell :
       {Tell{Tell::Kind::kStop, 250, "", ""}, Tell{Tell::Kind::kKill, -1, "", ""},
        Tell{Tell::Kind::kSignal, -1, "SIGUSR2", ""},
        Tell{Tell::Kind::kMessage, -1, "", R"({"type":"leave","grace_ms":1})"},
        Tell{Tell::Kind::kStop, 250, "", "", "", true},
        Tell{Tell::Kind::kShow, -1, "", "", "it is idle"}}) {
    EXPECT_EQ(DecodeTell(Encode(tell)), tell);
  }
}

TEST(Tell, AMessageIsOneLineHoweverItWasWritten) {
  const auto tell =
      DecodeTell(Encode(Tell{Tell::Kind::kMessage, -1, "", "{\n \"a\":\r\n \"b\\n\"}"}));
  ASSERT_TRUE(tell.has_value());
  EXPECT_EQ(tell->message, "{  \"a\":   \"b\\n\"}");
}

TEST(Tell, RefusesWhatCannotBeCarriedOut) {
  EXPECT_EQ(DecodeTell(R"({"version":1,"kind":"pause"})").error().message,
            "tell: kind: \"pause\" is none");
  EXPECT_EQ(DecodeTell(R"({"version":1,"kind":"signal","signal":"USR1"})").error().message,
            "tell: signal: \"USR1\" is no signal");
  EXPECT_EQ(DecodeTell(R"({"version":1,"kind":"stop","grace_ms":-2})").error().message,
            "tell: grace_ms: must be -1 or more");
  for (const char* message : {"[]", "{}{}", "", "{"}) {
    EXPECT_EQ(DecodeTell(Encode(Tell{Tell::Kind::kMessage, -1, "", message})).error().message,
              "tell: message: must be a JSON object");
  }
}

TEST(Tell, ReachesASocketInAFolderWithALongName) {
  auto folder =
      std::filesystem::temp_directory_path() / ("muster-tell-" + std::to_string(getpid()));
  const auto top = folder;
  folder /= std::string(120, 'd');
  std::filesystem::create_directories(folder);
  const auto nobody = SendTell(folder.string(), Tell{});
  ASSERT_FALSE(nobody.has_value());
  EXPECT_EQ(nobody.error().code, ErrorCode::kNotFound);

  const auto back = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  const int ctl = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strcpy(name.sun_path, "ctl");
  ASSERT_EQ(bind(ctl, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  std::filesystem::current_path(back);
  const auto sent = SendTell(folder.string(), Tell{Tell::Kind::kKill, -1, "", ""});
  ASSERT_TRUE(sent.has_value()) << sent.error().message;
  char got[256];
  const auto size = recv(ctl, got, sizeof got, 0);
  ASSERT_GT(size, 0);
  EXPECT_EQ(DecodeTell({got, static_cast<std::size_t>(size)})->kind, Tell::Kind::kKill);

  const auto large =
      SendTell(folder.string(), Tell{Tell::Kind::kMessage, -1, "", std::string(kLargestTell, ' ')});
  ASSERT_FALSE(large.has_value());
  EXPECT_EQ(large.error().code, ErrorCode::kInvalid);
  close(ctl);
  std::filesystem::remove_all(top);
}

TEST(Signals, NamesAndNumbersAgree) {
  for (int number = 1; number < 32; ++number) {
    EXPECT_EQ(SignalNumber(SignalName(number)), number);
  }
  EXPECT_EQ(SignalName(77), "signal 77");
  EXPECT_FALSE(SignalNumber("SIGNONE").has_value());
}

}  // namespace
}  // namespace muster::contract
