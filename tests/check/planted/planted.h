/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin with one fault, which FAULT selects; with FAULT=None it has none. It includes C and C++. Two ops:
 *   planted.norm(x f32[B,D], w f32[D,D]){epsilon, mode "rows"} = x / sqrt(mean(x^2) + epsilon) * transpose(w)
 *   planted.relu(x i8) = max(x, 0) i8, both with scales */
#ifndef TESTS_CHECK_PLANTED_H_
#define TESTS_CHECK_PLANTED_H_

enum Fault {
  None,
  /* numbers */
  EpsilonDropped,
  SumForMean,
  TailSkipped,
  WeightsTransposed,
  WrongAxis,
  WrongScale,
  WrongZeroPoint,
  EmptyBatch,
  Truncates,
  SwallowsNan,
  SpinsOnNan,
  AbortsOnInfinity,
  WrongInLargeBatches,
  WrongInHugeBatches,
  IgnoredAttribute,
  ZeroWeights,
  /* memory */
  ReadPastEnd,
  ReadBeforeStart,
  WritePastEnd,
  WriteBeforeStart,
  WriteInput,
  WriteConstant,
  FreedScratch,
  UninitializedScratch,
  KeptView,
  KeptHost,
  KeptText,
  ResultIsInput,
  HugeAllocation,
  /* state and threads */
  SessionLeak,
  StateKeptByReset,
  DataRace,
  OrderOfChunks,
  ThreadCount,
  NotDeterministic,
  FixedWorkers,
  FlushesInWorkers,
  RoundsInWorkers,
  /* the process */
  Throw,
  EndlessLoop,
  Abort,
  ExitZero,
  StdoutNoise,
  OpenFile,
  LeftThread,
  LeftFile,
  RoundingMode,
  Locale,
  SetsEnvironment,
  ChangesFolder,
  UnloadCrash,
  SignalHandler,
  LeakPerSession,
  LeakPerLoad,
  /* contracts */
  SizesCompared,
  VersionCompared,
  OptionalRequired,
  SupportsAnything,
  RuleReadsAbsent,
  RuleWithoutReason,
  RuleAcceptsAll,
  RuleKeepsState,
  RuleDeclinesAll
};

#endif /* TESTS_CHECK_PLANTED_H_ */
