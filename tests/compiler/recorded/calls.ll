; ModuleID = 'tests/compiler/programs/calls.cu'
source_filename = "tests/compiler/programs/calls.cu"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%struct.Pair = type { i32, float, i64, i8 }

; Function Attrs: mustprogress nofree noinline norecurse nosync nounwind willreturn memory(none)
define dso_local %struct.Pair @_Z4madejhb(i32 noundef %a, i8 noundef zeroext %narrow, i1 noundef zeroext %flag) local_unnamed_addr #0 {
entry:
  %mul = mul i32 %a, 3
  %cond = select i1 %flag, float 1.500000e+00, float -2.000000e+00
  %conv = zext i32 %a to i64
  %mul2 = mul nuw nsw i64 %conv, 5
  %add = add i8 %narrow, 1
  %.fca.0.insert = insertvalue %struct.Pair poison, i32 %mul, 0
  %.fca.1.insert = insertvalue %struct.Pair %.fca.0.insert, float %cond, 1
  %.fca.2.insert = insertvalue %struct.Pair %.fca.1.insert, i64 %mul2, 2
  %.fca.3.insert = insertvalue %struct.Pair %.fca.2.insert, i8 %add, 3
  ret %struct.Pair %.fca.3.insert
}

; Function Attrs: mustprogress nofree noinline norecurse nosync nounwind willreturn memory(argmem: read)
define dso_local noundef i32 @_Z6summed4PairRKS_s(ptr nofree noundef readonly byval(%struct.Pair) align 8 captures(none) %one, ptr nofree noundef nonnull readonly align 8 captures(none) dereferenceable(24) %other, i16 noundef signext %by) local_unnamed_addr #1 {
entry:
  %conv = sext i16 %by to i32
  %0 = load i32, ptr %one, align 8, !tbaa !7
  %add = add i32 %0, %conv
  %1 = load i32, ptr %other, align 8, !tbaa !7
  %add3 = add i32 %1, %add
  %b = getelementptr inbounds nuw i8, ptr %one, i64 4
  %2 = load float, ptr %b, align 4, !tbaa !11
  %mul = fmul float %2, 4.000000e+00
  %conv4 = fptoui float %mul to i32
  %add5 = add i32 %add3, %conv4
  %c = getelementptr inbounds nuw i8, ptr %other, i64 8
  %3 = load i64, ptr %c, align 8, !tbaa !12
  %conv6 = trunc i64 %3 to i32
  %add7 = add i32 %add5, %conv6
  %d = getelementptr inbounds nuw i8, ptr %one, i64 16
  %4 = load i8, ptr %d, align 8, !tbaa !13
  %conv8 = zext i8 %4 to i32
  %add9 = add i32 %add7, %conv8
  ret i32 %add9
}

; Function Attrs: mustprogress nofree noinline nosync nounwind willreturn memory(none)
define dso_local noundef i32 @_Z7countedj(i32 noundef %n) local_unnamed_addr #2 {
entry:
  %cmp6 = icmp ult i32 %n, 2
  br i1 %cmp6, label %cond.end, label %cond.false

cond.false:                                       ; preds = %entry, %cond.false
  %n.tr8 = phi i32 [ %sub1, %cond.false ], [ %n, %entry ]
  %accumulator.tr7 = phi i32 [ %add, %cond.false ], [ 0, %entry ]
  %sub = add i32 %n.tr8, -1
  %call = tail call noundef i32 @_Z7countedj(i32 noundef %sub) #7
  %sub1 = add i32 %n.tr8, -2
  %add = add i32 %call, %accumulator.tr7
  %cmp = icmp ult i32 %sub1, 2
  br i1 %cmp, label %cond.end, label %cond.false

cond.end:                                         ; preds = %cond.false, %entry
  %accumulator.tr.lcssa = phi i32 [ 0, %entry ], [ %add, %cond.false ]
  %n.tr.lcssa = phi i32 [ %n, %entry ], [ %sub1, %cond.false ]
  %accumulator.ret.tr = add i32 %n.tr.lcssa, %accumulator.tr.lcssa
  ret i32 %accumulator.ret.tr
}

; Function Attrs: mustprogress nofree noinline norecurse nosync nounwind willreturn memory(argmem: write)
define dso_local void @_Z7writtenPjb(ptr nofree noundef writeonly captures(none) initializes((0, 4)) %to, i1 noundef zeroext %odd) local_unnamed_addr #3 {
entry:
  %cond = select i1 %odd, i32 7, i32 8
  store i32 %cond, ptr %to, align 4, !tbaa !14
  ret void
}

; Function Attrs: mustprogress nofree noinline norecurse nosync nounwind willreturn memory(none)
define dso_local noundef zeroext i1 @_Z8is_smalla(i8 noundef signext %x) local_unnamed_addr #0 {
entry:
  %cmp = icmp slt i8 %x, 5
  ret i1 %cmp
}

; Function Attrs: mustprogress nofree noinline norecurse nosync nounwind willreturn memory(argmem: readwrite)
define dso_local ptx_kernel void @k(ptr nofree noundef readonly captures(none) %in, ptr nofree noundef writeonly captures(none) %out) local_unnamed_addr #4 {
entry:
  %other = alloca %struct.Pair, align 8
  %agg.tmp = alloca %struct.Pair, align 8
  %own = alloca i32, align 4
  %0 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %idxprom = zext nneg i32 %0 to i64
  %arrayidx = getelementptr inbounds nuw [4 x i8], ptr %in, i64 %idxprom
  %1 = load i32, ptr %arrayidx, align 4, !tbaa !14
  %arrayidx3 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 256
  %2 = load i32, ptr %arrayidx3, align 4, !tbaa !14
  %mul = shl nuw nsw i32 %0, 4
  %idx.ext = zext nneg i32 %mul to i64
  %add.ptr = getelementptr inbounds nuw [4 x i8], ptr %out, i64 %idx.ext
  %conv = trunc i32 %2 to i8
  %tobool = trunc i32 %1 to i1
  %call5 = tail call %struct.Pair @_Z4madejhb(i32 noundef %1, i8 noundef zeroext %conv, i1 noundef zeroext %tobool) #7
  %3 = extractvalue %struct.Pair %call5, 0
  %4 = extractvalue %struct.Pair %call5, 1
  %5 = extractvalue %struct.Pair %call5, 2
  %6 = extractvalue %struct.Pair %call5, 3
  call void @llvm.lifetime.start.p0(ptr nonnull %other) #8
  %cmp = icmp ugt i32 %2, %1
  %call6 = tail call %struct.Pair @_Z4madejhb(i32 noundef %2, i8 noundef zeroext 9, i1 noundef zeroext %cmp) #7
  %7 = extractvalue %struct.Pair %call6, 0
  store i32 %7, ptr %other, align 8
  %8 = getelementptr inbounds nuw i8, ptr %other, i64 4
  %9 = extractvalue %struct.Pair %call6, 1
  store float %9, ptr %8, align 4
  %10 = getelementptr inbounds nuw i8, ptr %other, i64 8
  %11 = extractvalue %struct.Pair %call6, 2
  store i64 %11, ptr %10, align 8
  %12 = getelementptr inbounds nuw i8, ptr %other, i64 16
  %13 = extractvalue %struct.Pair %call6, 3
  store i8 %13, ptr %12, align 8
  store i32 %3, ptr %add.ptr, align 4, !tbaa !14
  %arrayidx11 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 4
  store float %4, ptr %arrayidx11, align 4, !tbaa !14
  %conv12 = trunc i64 %5 to i32
  %arrayidx13 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 8
  store i32 %conv12, ptr %arrayidx13, align 4, !tbaa !14
  %conv14 = zext i8 %6 to i32
  %arrayidx15 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 12
  store i32 %conv14, ptr %arrayidx15, align 4, !tbaa !14
  store i32 %3, ptr %agg.tmp, align 8, !tbaa !14
  %one.sroa.6.0.agg.tmp.sroa_idx = getelementptr inbounds nuw i8, ptr %agg.tmp, i64 4
  store float %4, ptr %one.sroa.6.0.agg.tmp.sroa_idx, align 4, !tbaa !15
  %one.sroa.8.0.agg.tmp.sroa_idx = getelementptr inbounds nuw i8, ptr %agg.tmp, i64 8
  store i64 %5, ptr %one.sroa.8.0.agg.tmp.sroa_idx, align 8, !tbaa !16
  %one.sroa.10.0.agg.tmp.sroa_idx = getelementptr inbounds nuw i8, ptr %agg.tmp, i64 16
  store i8 %6, ptr %one.sroa.10.0.agg.tmp.sroa_idx, align 8, !tbaa !17
  %conv16 = trunc i32 %1 to i16
  %call17 = call noundef i32 @_Z6summed4PairRKS_s(ptr noundef nonnull byval(%struct.Pair) align 8 %agg.tmp, ptr noundef nonnull align 8 dereferenceable(24) %other, i16 noundef signext %conv16) #7
  %arrayidx18 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 16
  store i32 %call17, ptr %arrayidx18, align 4, !tbaa !14
  %arrayidx20 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 20
  store i32 %3, ptr %arrayidx20, align 4, !tbaa !14
  %rem = urem i32 %1, 9
  %call21 = tail call noundef i32 @_Z7countedj(i32 noundef %rem) #7
  %arrayidx22 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 24
  store i32 %call21, ptr %arrayidx22, align 4, !tbaa !14
  call void @llvm.lifetime.start.p0(ptr nonnull %own) #8
  %tobool24 = trunc i32 %2 to i1
  call void @_Z7writtenPjb(ptr noundef nonnull %own, i1 noundef zeroext %tobool24) #7
  %14 = load i32, ptr %own, align 4, !tbaa !14
  %arrayidx25 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 28
  store i32 %14, ptr %arrayidx25, align 4, !tbaa !14
  %add.ptr26 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 32
  tail call void @_Z7writtenPjb(ptr noundef nonnull %add.ptr26, i1 noundef zeroext %tobool) #7
  %conv29 = trunc i32 %1 to i8
  %call30 = tail call noundef zeroext i1 @_Z8is_smalla(i8 noundef signext %conv29) #7
  %conv31 = zext i1 %call30 to i32
  %call33 = tail call noundef zeroext i1 @_Z8is_smalla(i8 noundef signext %conv) #7
  %shl = select i1 %call33, i32 2, i32 0
  %or = or disjoint i32 %shl, %conv31
  %arrayidx35 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 36
  store i32 %or, ptr %arrayidx35, align 4, !tbaa !14
  call void @llvm.lifetime.end.p0(ptr nonnull %own) #8
  call void @llvm.lifetime.end.p0(ptr nonnull %other) #8
  ret void
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #5

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #5

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #6

attributes #0 = { mustprogress nofree noinline norecurse nosync nounwind willreturn memory(none) "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx87,+sm_90a" "uniform-work-group-size" }
attributes #1 = { mustprogress nofree noinline norecurse nosync nounwind willreturn memory(argmem: read) "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx87,+sm_90a" "uniform-work-group-size" }
attributes #2 = { mustprogress nofree noinline nosync nounwind willreturn memory(none) "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx87,+sm_90a" "uniform-work-group-size" }
attributes #3 = { mustprogress nofree noinline norecurse nosync nounwind willreturn memory(argmem: write) "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx87,+sm_90a" "uniform-work-group-size" }
attributes #4 = { mustprogress nofree noinline norecurse nosync nounwind willreturn memory(argmem: readwrite) "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx87,+sm_90a" "uniform-work-group-size" }
attributes #5 = { mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #6 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #7 = { nounwind "uniform-work-group-size" }
attributes #8 = { nounwind }

!llvm.module.flags = !{!0}
!llvm.ident = !{!1}
!llvm.errno.tbaa = !{!2}

!0 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
!1 = !{!"clang version 23.1.0 (https://github.com/emscripten-forge/recipes 45d36c0f0278f80f0dc674dd1dc55770c59c0682)"}
!2 = !{!3, !4, i64 0}
!3 = !{!"__libc_errno", !4, i64 0}
!4 = !{!"int", !5, i64 0}
!5 = !{!"omnipotent char", !6, i64 0}
!6 = !{!"Simple C++ TBAA"}
!7 = !{!8, !4, i64 0}
!8 = !{!"_ZTS4Pair", !4, i64 0, !9, i64 4, !10, i64 8, !5, i64 16}
!9 = !{!"float", !5, i64 0}
!10 = !{!"long long", !5, i64 0}
!11 = !{!8, !9, i64 4}
!12 = !{!8, !10, i64 8}
!13 = !{!8, !5, i64 16}
!14 = !{!4, !4, i64 0}
!15 = !{!9, !9, i64 0}
!16 = !{!10, !10, i64 0}
!17 = !{!5, !5, i64 0}
