; ModuleID = 'tests/compiler/programs/control.cu'
source_filename = "tests/compiler/programs/control.cu"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none)
define dso_local noundef i32 @_Z16greatest_divisorjj(i32 noundef %a, i32 noundef %b) local_unnamed_addr #0 !dbg !10 {
entry:
  %tobool.not4 = icmp eq i32 %b, 0, !dbg !14
  br i1 %tobool.not4, label %while.end, label %while.body, !dbg !15

while.body:                                       ; preds = %entry, %while.body
  %a.addr.06 = phi i32 [ %b.addr.05, %while.body ], [ %a, %entry ]
  %b.addr.05 = phi i32 [ %rem, %while.body ], [ %b, %entry ]
  %rem = urem i32 %a.addr.06, %b.addr.05, !dbg !16
  %tobool.not = icmp eq i32 %rem, 0, !dbg !14
  br i1 %tobool.not, label %while.end, label %while.body, !dbg !15, !llvm.loop !17

while.end:                                        ; preds = %while.body, %entry
  %a.addr.0.lcssa = phi i32 [ %a, %entry ], [ %b.addr.05, %while.body ]
  ret i32 %a.addr.0.lcssa, !dbg !20
}

; Function Attrs: mustprogress nofree noinline norecurse nosync nounwind memory(argmem: readwrite)
define dso_local ptx_kernel void @k(ptr nofree noundef readonly captures(none) %in, ptr nofree noundef writeonly captures(none) %out) local_unnamed_addr #1 !dbg !21 {
entry:
  %0 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !dbg !22
  %idxprom = zext nneg i32 %0 to i64, !dbg !26
  %arrayidx = getelementptr inbounds nuw [4 x i8], ptr %in, i64 %idxprom, !dbg !26
  %1 = load i32, ptr %arrayidx, align 4, !dbg !26, !tbaa !27
  %arrayidx3 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 256, !dbg !28
  %2 = load i32, ptr %arrayidx3, align 4, !dbg !28, !tbaa !27
  %mul = shl nuw nsw i32 %0, 4, !dbg !29
  %idx.ext = zext nneg i32 %mul to i64, !dbg !30
  %add.ptr = getelementptr inbounds nuw [4 x i8], ptr %out, i64 %idx.ext, !dbg !30
  %shr = lshr i32 %1, 8, !dbg !31
  %shr5 = lshr i32 %2, 8, !dbg !32
  %tobool.not4.i = icmp eq i32 %shr5, 0, !dbg !33
  br i1 %tobool.not4.i, label %_Z16greatest_divisorjj.exit, label %while.body.i, !dbg !35

while.body.i:                                     ; preds = %entry, %while.body.i
  %a.addr.06.i = phi i32 [ %b.addr.05.i, %while.body.i ], [ %shr, %entry ]
  %b.addr.05.i = phi i32 [ %rem.i, %while.body.i ], [ %shr5, %entry ]
  %rem.i = urem i32 %a.addr.06.i, %b.addr.05.i, !dbg !36
  %tobool.not.i = icmp eq i32 %rem.i, 0, !dbg !33
  br i1 %tobool.not.i, label %_Z16greatest_divisorjj.exit, label %while.body.i, !dbg !35, !llvm.loop !37

_Z16greatest_divisorjj.exit:                      ; preds = %while.body.i, %entry
  %a.addr.0.lcssa.i = phi i32 [ %shr, %entry ], [ %b.addr.05.i, %while.body.i ]
  store i32 %a.addr.0.lcssa.i, ptr %add.ptr, align 4, !dbg !39, !tbaa !27
  %xor = xor i32 %2, %1, !dbg !40
  %and = and i32 %1, 15
  br label %for.cond, !dbg !41

for.cond:                                         ; preds = %for.cond, %_Z16greatest_divisorjj.exit
  %z.0 = phi i32 [ %xor, %_Z16greatest_divisorjj.exit ], [ %x.0, %for.cond ], !dbg !42
  %i.0 = phi i32 [ 0, %_Z16greatest_divisorjj.exit ], [ %inc, %for.cond ], !dbg !43
  %y.0 = phi i32 [ %2, %_Z16greatest_divisorjj.exit ], [ %z.0, %for.cond ], !dbg !42
  %x.0 = phi i32 [ %1, %_Z16greatest_divisorjj.exit ], [ %y.0, %for.cond ], !dbg !42
  %inc = add nuw nsw i32 %i.0, 1, !dbg !44
  %exitcond.not = icmp eq i32 %i.0, %and, !dbg !45
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.cond, !dbg !46, !llvm.loop !47

for.cond.cleanup:                                 ; preds = %for.cond
  %arrayidx8 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 4, !dbg !50
  store i32 %x.0, ptr %arrayidx8, align 4, !dbg !51, !tbaa !27
  %arrayidx9 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 8, !dbg !52
  store i32 %y.0, ptr %arrayidx9, align 4, !dbg !53, !tbaa !27
  %arrayidx10 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 12, !dbg !54
  store i32 %z.0, ptr %arrayidx10, align 4, !dbg !55, !tbaa !27
  br label %for.body15, !dbg !56

for.body15:                                       ; preds = %for.cond.cleanup, %for.inc25
  %i11.0181 = phi i32 [ 0, %for.cond.cleanup ], [ %inc26, %for.inc25 ]
  %last.0180 = phi i32 [ 0, %for.cond.cleanup ], [ %last.1, %for.inc25 ]
  %sum.0179 = phi i32 [ 0, %for.cond.cleanup ], [ %sum.1, %for.inc25 ]
  %rem = and i32 %i11.0181, 31, !dbg !57
  %shr16 = lshr i32 %1, %rem, !dbg !58
  %and17 = and i32 %shr16, 3, !dbg !59
  %cmp18 = icmp eq i32 %and17, 1, !dbg !60
  br i1 %cmp18, label %for.inc25, label %if.end, !dbg !60

if.end:                                           ; preds = %for.body15
  %mul19 = mul i32 %i11.0181, %2, !dbg !61
  %add20 = add i32 %mul19, %sum.0179, !dbg !62
  %rem21 = urem i32 %add20, 11, !dbg !63
  %cmp22 = icmp eq i32 %rem21, 3, !dbg !64
  br i1 %cmp22, label %cleanup, label %for.inc25, !dbg !64

for.inc25:                                        ; preds = %if.end, %for.body15
  %sum.1 = phi i32 [ %sum.0179, %for.body15 ], [ %add20, %if.end ], !dbg !42
  %last.1 = phi i32 [ %last.0180, %for.body15 ], [ %sum.0179, %if.end ], !dbg !42
  %inc26 = add nuw nsw i32 %i11.0181, 1, !dbg !65
  %exitcond192.not = icmp eq i32 %inc26, 40, !dbg !66
  br i1 %exitcond192.not, label %cleanup, label %for.body15, !dbg !56, !llvm.loop !67

cleanup:                                          ; preds = %if.end, %for.inc25
  %sum.2 = phi i32 [ %sum.1, %for.inc25 ], [ %add20, %if.end ], !dbg !42
  %last.2 = phi i32 [ %last.1, %for.inc25 ], [ %sum.0179, %if.end ], !dbg !42
  %arrayidx28 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 16, !dbg !69
  store i32 %sum.2, ptr %arrayidx28, align 4, !dbg !70, !tbaa !27
  %arrayidx29 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 20, !dbg !71
  store i32 %last.2, ptr %arrayidx29, align 4, !dbg !72, !tbaa !27
  %rem30 = urem i32 %1, 7, !dbg !73
  switch i32 %rem30, label %sw.default [
    i32 0, label %sw.epilog
    i32 1, label %sw.bb32
    i32 2, label %sw.bb34
    i32 5, label %sw.bb36
  ], !dbg !74

sw.bb32:                                          ; preds = %cleanup
  %arrayidx33 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 24, !dbg !75
  store i32 %1, ptr %arrayidx33, align 4, !dbg !76, !tbaa !27
  br label %sw.bb34, !dbg !75

sw.bb34:                                          ; preds = %cleanup, %sw.bb32
  br label %sw.epilog, !dbg !77

sw.bb36:                                          ; preds = %cleanup
  %mul37 = mul i32 %2, %1, !dbg !78
  br label %sw.epilog, !dbg !79

sw.default:                                       ; preds = %cleanup
  br label %sw.epilog, !dbg !80

sw.epilog:                                        ; preds = %cleanup, %sw.default, %sw.bb36, %sw.bb34
  %.sink196 = phi i64 [ 28, %sw.default ], [ 24, %sw.bb36 ], [ 28, %sw.bb34 ], [ 24, %cleanup ]
  %.sink = phi i32 [ 9, %sw.default ], [ %mul37, %sw.bb36 ], [ %2, %sw.bb34 ], [ 1, %cleanup ]
  %arrayidx39 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 %.sink196, !dbg !42
  store i32 %.sink, ptr %arrayidx39, align 4, !dbg !42, !tbaa !27
  %and42 = and i32 %2, 7
  %cmp43184.not = icmp eq i32 %and42, 0, !dbg !81
  br i1 %cmp43184.not, label %out_of_both, label %for.cond46.preheader.lr.ph, !dbg !82

for.cond46.preheader.lr.ph:                       ; preds = %sw.epilog
  %and50 = and i32 %1, 7
  br label %for.cond46.preheader, !dbg !82

for.cond46.preheader:                             ; preds = %for.cond46.preheader.lr.ph, %for.inc63
  %i40.0186 = phi i32 [ 0, %for.cond46.preheader.lr.ph ], [ %inc64, %for.inc63 ]
  %steps.0185 = phi i32 [ 0, %for.cond46.preheader.lr.ph ], [ %add55, %for.inc63 ]
  br label %for.body49, !dbg !83

for.body49:                                       ; preds = %for.cond46.preheader, %if.end53
  %k.0183 = phi i32 [ %i40.0186, %for.cond46.preheader ], [ %add60, %if.end53 ]
  %steps.1182 = phi i32 [ %steps.0185, %for.cond46.preheader ], [ %add55, %if.end53 ]
  %cmp51 = icmp eq i32 %k.0183, %and50, !dbg !84
  br i1 %cmp51, label %out_of_both, label %if.end53, !dbg !84

if.end53:                                         ; preds = %for.body49
  %mul54 = mul i32 %steps.1182, 3, !dbg !85
  %add55 = add i32 %mul54, %k.0183, !dbg !86
  %shr57 = lshr i32 %1, %k.0183, !dbg !87
  %and58 = and i32 %shr57, 1, !dbg !88
  %add59 = add nuw nsw i32 %k.0183, 1, !dbg !89
  %add60 = add nuw nsw i32 %add59, %and58, !dbg !90
  %cmp47 = icmp samesign ugt i32 %add60, 8, !dbg !91
  br i1 %cmp47, label %for.inc63, label %for.body49, !dbg !83, !llvm.loop !92

for.inc63:                                        ; preds = %if.end53
  %inc64 = add nuw nsw i32 %i40.0186, 1, !dbg !94
  %exitcond193.not = icmp eq i32 %inc64, %and42, !dbg !81
  br i1 %exitcond193.not, label %out_of_both, label %for.cond46.preheader, !dbg !82, !llvm.loop !95

out_of_both:                                      ; preds = %for.inc63, %for.body49, %sw.epilog
  %steps.2 = phi i32 [ %steps.1182, %for.body49 ], [ 0, %sw.epilog ], [ %add55, %for.inc63 ], !dbg !96
  %arrayidx68 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 32, !dbg !97
  store i32 %steps.2, ptr %arrayidx68, align 4, !dbg !98, !tbaa !27
  br label %for.body73, !dbg !99

for.cond.cleanup72:                               ; preds = %for.body73
  %conv = zext i1 %cmp77 to i32, !dbg !100
  %arrayidx85 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 36, !dbg !101
  store i32 %conv, ptr %arrayidx85, align 4, !dbg !102, !tbaa !27
  %arrayidx87 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 40, !dbg !103
  store float %cond, ptr %arrayidx87, align 4, !dbg !104, !tbaa !27
  %arrayidx89 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 44, !dbg !105
  store float %f.0187, ptr %arrayidx89, align 4, !dbg !106, !tbaa !27
  %and91 = and i32 %0, 1, !dbg !107
  %tobool.not = icmp eq i32 %and91, 0, !dbg !108
  br i1 %tobool.not, label %if.end93, label %cleanup104, !dbg !108

for.body73:                                       ; preds = %out_of_both, %for.body73
  %i69.0189 = phi i32 [ 0, %out_of_both ], [ %inc81, %for.body73 ]
  %g.0188 = phi float [ 2.000000e+00, %out_of_both ], [ %f.0187, %for.body73 ]
  %f.0187 = phi float [ 1.000000e+00, %out_of_both ], [ %cond, %for.body73 ]
  %shr74 = lshr i32 %1, %i69.0189, !dbg !109
  %3 = xor i32 %shr74, %2, !dbg !110
  %4 = and i32 %3, 15, !dbg !110
  %cmp77 = icmp eq i32 %4, 0, !dbg !110
  %add79 = fadd float %g.0188, 1.000000e+00, !dbg !111
  %cond = select i1 %cmp77, float %g.0188, float %add79, !dbg !111
  %inc81 = add nuw nsw i32 %i69.0189, 1, !dbg !112
  %cmp71 = icmp samesign ugt i32 %i69.0189, 18, !dbg !113
  %.not = select i1 %cmp71, i1 true, i1 %cmp77, !dbg !99
  br i1 %.not, label %for.cond.cleanup72, label %for.body73, !dbg !99, !llvm.loop !114

if.end93:                                         ; preds = %for.cond.cleanup72
  %cmp95 = icmp samesign ugt i32 %0, 20, !dbg !116
  %cond99 = select i1 %cmp95, i32 %x.0, i32 %y.0, !dbg !117
  %arrayidx100 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 48, !dbg !118
  store i32 %cond99, ptr %arrayidx100, align 4, !dbg !119, !tbaa !27
  br label %cleanup104, !dbg !120

cleanup104:                                       ; preds = %if.end93, %for.cond.cleanup72
  ret void, !dbg !120
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #2

attributes #0 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx87,+sm_90a" "uniform-work-group-size" }
attributes #1 = { mustprogress nofree noinline norecurse nosync nounwind memory(argmem: readwrite) "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx87,+sm_90a" "uniform-work-group-size" }
attributes #2 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}
!llvm.ident = !{!4}
!llvm.errno.tbaa = !{!5}

!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !1, producer: "clang version 23.1.0 (https://github.com/emscripten-forge/recipes 45d36c0f0278f80f0dc674dd1dc55770c59c0682)", isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly, splitDebugInlining: false, nameTableKind: None)
!1 = !DIFile(filename: "tests/compiler/programs/<stdin>", directory: "")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
!4 = !{!"clang version 23.1.0 (https://github.com/emscripten-forge/recipes 45d36c0f0278f80f0dc674dd1dc55770c59c0682)"}
!5 = !{!6, !7, i64 0}
!6 = !{!"__libc_errno", !7, i64 0}
!7 = !{!"int", !8, i64 0}
!8 = !{!"omnipotent char", !9, i64 0}
!9 = !{!"Simple C++ TBAA"}
!10 = distinct !DISubprogram(name: "greatest_divisor", scope: !11, file: !11, line: 4, type: !12, scopeLine: 4, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!11 = !DIFile(filename: "tests/compiler/programs/control.cu", directory: "")
!12 = !DISubroutineType(types: !13)
!13 = !{}
!14 = !DILocation(line: 5, column: 12, scope: !10)
!15 = !DILocation(line: 5, column: 5, scope: !10)
!16 = !DILocation(line: 6, column: 33, scope: !10)
!17 = distinct !{!17, !15, !18, !19}
!18 = !DILocation(line: 8, column: 5, scope: !10)
!19 = !{!"llvm.loop.mustprogress"}
!20 = !DILocation(line: 9, column: 5, scope: !10)
!21 = distinct !DISubprogram(name: "k", scope: !11, file: !11, line: 12, type: !12, scopeLine: 12, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!22 = !DILocation(line: 71, column: 1, scope: !23, inlinedAt: !25)
!23 = distinct !DISubprogram(name: "get_x", scope: !24, file: !24, line: 71, type: !12, scopeLine: 71, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!24 = !DIFile(filename: "common/compiler/include/cuda_runtime.h", directory: "")
!25 = distinct !DILocation(line: 13, column: 27, scope: !21)
!26 = !DILocation(line: 13, column: 24, scope: !21)
!27 = !{!7, !7, i64 0}
!28 = !DILocation(line: 13, column: 45, scope: !21)
!29 = !DILocation(line: 14, column: 38, scope: !21)
!30 = !DILocation(line: 14, column: 24, scope: !21)
!31 = !DILocation(line: 15, column: 32, scope: !21)
!32 = !DILocation(line: 15, column: 40, scope: !21)
!33 = !DILocation(line: 5, column: 12, scope: !10, inlinedAt: !34)
!34 = distinct !DILocation(line: 15, column: 13, scope: !21)
!35 = !DILocation(line: 5, column: 5, scope: !10, inlinedAt: !34)
!36 = !DILocation(line: 6, column: 33, scope: !10, inlinedAt: !34)
!37 = distinct !{!37, !35, !38, !19}
!38 = !DILocation(line: 8, column: 5, scope: !10, inlinedAt: !34)
!39 = !DILocation(line: 15, column: 11, scope: !21)
!40 = !DILocation(line: 16, column: 34, scope: !21)
!41 = !DILocation(line: 18, column: 10, scope: !21)
!42 = !DILocation(line: 0, scope: !21)
!43 = !DILocation(line: 18, scope: !21)
!44 = !DILocation(line: 18, column: 40, scope: !21)
!45 = !DILocation(line: 18, column: 28, scope: !21)
!46 = !DILocation(line: 18, column: 5, scope: !21)
!47 = distinct !{!47, !46, !48, !19, !49}
!48 = !DILocation(line: 21, column: 5, scope: !21)
!49 = !{!"llvm.loop.unroll.disable"}
!50 = !DILocation(line: 22, column: 5, scope: !21)
!51 = !DILocation(line: 22, column: 11, scope: !21)
!52 = !DILocation(line: 22, column: 16, scope: !21)
!53 = !DILocation(line: 22, column: 22, scope: !21)
!54 = !DILocation(line: 22, column: 27, scope: !21)
!55 = !DILocation(line: 22, column: 33, scope: !21)
!56 = !DILocation(line: 25, column: 5, scope: !21)
!57 = !DILocation(line: 26, column: 21, scope: !21)
!58 = !DILocation(line: 26, column: 16, scope: !21)
!59 = !DILocation(line: 26, column: 26, scope: !21)
!60 = !DILocation(line: 26, column: 31, scope: !21)
!61 = !DILocation(line: 28, column: 18, scope: !21)
!62 = !DILocation(line: 28, column: 13, scope: !21)
!63 = !DILocation(line: 29, column: 17, scope: !21)
!64 = !DILocation(line: 29, column: 22, scope: !21)
!65 = !DILocation(line: 25, column: 34, scope: !21)
!66 = !DILocation(line: 25, column: 28, scope: !21)
!67 = distinct !{!67, !56, !68, !19, !49}
!68 = !DILocation(line: 30, column: 5, scope: !21)
!69 = !DILocation(line: 31, column: 5, scope: !21)
!70 = !DILocation(line: 31, column: 11, scope: !21)
!71 = !DILocation(line: 31, column: 18, scope: !21)
!72 = !DILocation(line: 31, column: 24, scope: !21)
!73 = !DILocation(line: 32, column: 15, scope: !21)
!74 = !DILocation(line: 32, column: 5, scope: !21)
!75 = !DILocation(line: 34, column: 17, scope: !21)
!76 = !DILocation(line: 34, column: 23, scope: !21)
!77 = !DILocation(line: 35, column: 28, scope: !21)
!78 = !DILocation(line: 36, column: 27, scope: !21)
!79 = !DILocation(line: 36, column: 32, scope: !21)
!80 = !DILocation(line: 38, column: 5, scope: !21)
!81 = !DILocation(line: 41, column: 28, scope: !21)
!82 = !DILocation(line: 41, column: 5, scope: !21)
!83 = !DILocation(line: 43, column: 9, scope: !21)
!84 = !DILocation(line: 44, column: 19, scope: !21)
!85 = !DILocation(line: 45, column: 27, scope: !21)
!86 = !DILocation(line: 45, column: 31, scope: !21)
!87 = !DILocation(line: 43, column: 49, scope: !21)
!88 = !DILocation(line: 43, column: 54, scope: !21)
!89 = !DILocation(line: 43, column: 44, scope: !21)
!90 = !DILocation(line: 43, column: 39, scope: !21)
!91 = !DILocation(line: 43, column: 32, scope: !21)
!92 = distinct !{!92, !83, !93, !19, !49}
!93 = !DILocation(line: 46, column: 9, scope: !21)
!94 = !DILocation(line: 41, column: 39, scope: !21)
!95 = distinct !{!95, !82, !93, !19, !49}
!96 = !DILocation(line: 39, column: 14, scope: !21)
!97 = !DILocation(line: 48, column: 5, scope: !21)
!98 = !DILocation(line: 48, column: 11, scope: !21)
!99 = !DILocation(line: 52, column: 5, scope: !21)
!100 = !DILocation(line: 57, column: 13, scope: !21)
!101 = !DILocation(line: 57, column: 5, scope: !21)
!102 = !DILocation(line: 57, column: 11, scope: !21)
!103 = !DILocation(line: 57, column: 20, scope: !21)
!104 = !DILocation(line: 57, column: 27, scope: !21)
!105 = !DILocation(line: 57, column: 49, scope: !21)
!106 = !DILocation(line: 57, column: 56, scope: !21)
!107 = !DILocation(line: 58, column: 21, scope: !21)
!108 = !DILocation(line: 58, column: 9, scope: !21)
!109 = !DILocation(line: 53, column: 20, scope: !21)
!110 = !DILocation(line: 53, column: 31, scope: !21)
!111 = !DILocation(line: 55, column: 13, scope: !21)
!112 = !DILocation(line: 52, column: 44, scope: !21)
!113 = !DILocation(line: 52, column: 28, scope: !21)
!114 = distinct !{!114, !99, !115, !19, !49}
!115 = !DILocation(line: 56, column: 5, scope: !21)
!116 = !DILocation(line: 59, column: 26, scope: !21)
!117 = !DILocation(line: 59, column: 14, scope: !21)
!118 = !DILocation(line: 59, column: 5, scope: !21)
!119 = !DILocation(line: 59, column: 12, scope: !21)
!120 = !DILocation(line: 60, column: 1, scope: !21)
