#include "support/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <string>

#include "support/temp_dir.h"
#include "support/wait.h"

namespace weir::test {
namespace {

using std::chrono::milliseconds;

TEST(ChildProcess, TellsExitCodeAndOutputOfBothStreams) {
  const RunResult result = RunProgram({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.error_output, "err\n");
}

TEST(ChildProcess, UnknownProgramExitsWith127) {
  EXPECT_EQ(RunProgram({"/no/such/program"}).exit_code, 127);
}

TEST(ChildProcess, OutputLargerThanAPipeIsCapturedWhole) {
  const RunResult result = RunProgram({"sh", "-c", "head -c 1000000 /dev/zero"});
  EXPECT_EQ(result.output.size(), 1000000U);
}

TEST(ChildProcess, WaitForLineFindsALineWhileTheProgramRuns) {
  ChildProcess child({"sh", "-c", "echo ready on 7; exec sleep 60"});
  EXPECT_EQ(child.WaitForLine("ready"), "ready on 7");
  EXPECT_TRUE(child.running());
  EXPECT_EQ(child.Wait(milliseconds(1)), std::nullopt);
}

TEST(ChildProcess, WaitForLineGivesUpWhenTheProgramEnds) {
  ChildProcess child({"sh", "-c", "echo something else"});
  EXPECT_EQ(child.WaitForLine("ready"), std::nullopt);
}

TEST(ChildProcess, TerminateSendsSigterm) {
  ChildProcess child(
      {"sh", "-c", "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.01; done"});
  ASSERT_TRUE(child.WaitForLine("up"));
  EXPECT_EQ(child.Terminate(), 5);
  EXPECT_EQ(child.output(), "up\nbye\n");
}

TEST(ChildProcess, TerminateKillsWhatDoesNotListen) {
  ChildProcess child({"sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.01; done"});
  ASSERT_TRUE(child.WaitForLine("up"));
  EXPECT_EQ(child.Terminate(milliseconds(50)), 128 + SIGKILL);
}

TEST(ChildProcess, DestructorEndsTheWholeGroup) {
  pid_t grandchild = 0;
  {
    ChildProcess child({"sh", "-c", "sleep 60 & echo pid $!; wait"});
    grandchild = std::stoi(child.WaitForLine("pid").value().substr(4));
    ASSERT_EQ(kill(grandchild, 0), 0);
  }
  EXPECT_TRUE(WaitUntil([grandchild] {  // its new parent may take a moment to reap it
    if (kill(grandchild, 0) != 0) return errno == ESRCH;
    const std::string stat = ReadFile("/proc/" + std::to_string(grandchild) + "/stat");
    return stat.find(") Z ") != std::string::npos;
  }));
}

TEST(ChildProcess, PassesEnvironmentAndDirectory) {
  const TempDir dir;
  const RunResult result = RunProgram({"sh", "-c", "echo $WEIR_X; pwd"},
                                      {.env = {"WEIR_X=1"}, .directory = dir.path().string()});
  EXPECT_EQ(result.output, "1\n" + dir.path().string() + "\n");
}

}  // namespace
}  // namespace weir::test
