; ModuleID = 'tests/compiler/programs/atomics.cu'
source_filename = "tests/compiler/programs/atomics.cu"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@_ZZ1kE4sums = internal addrspace(3) global [4 x i32] undef, align 4
@_ZZ1kE4wide = internal addrspace(3) global i64 undef, align 8
@_ZZ1kE5least = internal addrspace(3) global i32 undef, align 4

; Function Attrs: convergent mustprogress noinline norecurse nounwind
define dso_local ptx_kernel void @k(ptr nofree noundef readonly captures(none) %in, ptr nofree noundef captures(none) %out) local_unnamed_addr #0 {
entry:
  %0 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %idxprom = zext nneg i32 %0 to i64
  %arrayidx = getelementptr inbounds nuw [4 x i8], ptr %in, i64 %idxprom
  %1 = load i32, ptr %arrayidx, align 4, !tbaa !7
  %cmp = icmp samesign ult i32 %0, 4
  br i1 %cmp, label %if.end, label %if.end5

if.end:                                           ; preds = %entry
  %arrayidx2 = getelementptr inbounds nuw [4 x i8], ptr addrspacecast (ptr addrspace(3) @_ZZ1kE4sums to ptr), i64 %idxprom
  store i32 0, ptr %arrayidx2, align 4, !tbaa !7
  %cmp3 = icmp eq i32 %0, 0
  br i1 %cmp3, label %if.then4, label %if.end5

if.then4:                                         ; preds = %if.end
  store i64 1, ptr addrspacecast (ptr addrspace(3) @_ZZ1kE4wide to ptr), align 8, !tbaa !8
  store i32 1073741824, ptr addrspacecast (ptr addrspace(3) @_ZZ1kE5least to ptr), align 4, !tbaa !7
  br label %if.end5

if.end5:                                          ; preds = %entry, %if.then4, %if.end
  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %and = and i32 %1, 3
  %idxprom6 = zext nneg i32 %and to i64
  %arrayidx7 = getelementptr inbounds nuw [4 x i8], ptr addrspacecast (ptr addrspace(3) @_ZZ1kE4sums to ptr), i64 %idxprom6
  %2 = atomicrmw add ptr %arrayidx7, i32 %1 syncscope("device") monotonic, align 4
  %xor = xor i32 %and, 1
  %idxprom10 = zext nneg i32 %xor to i64
  %arrayidx11 = getelementptr inbounds nuw [4 x i8], ptr addrspacecast (ptr addrspace(3) @_ZZ1kE4sums to ptr), i64 %idxprom10
  %3 = atomicrmw or ptr %arrayidx11, i32 0 syncscope("device") monotonic, align 4
  %4 = atomicrmw min ptr addrspacecast (ptr addrspace(3) @_ZZ1kE5least to ptr), i32 %1 syncscope("device") monotonic, align 4
  %shl = shl nuw i64 1, %idxprom
  %5 = atomicrmw or ptr addrspacecast (ptr addrspace(3) @_ZZ1kE4wide to ptr), i64 %shl syncscope("device") monotonic, align 8
  %mul = shl nuw nsw i32 %0, 4
  %idx.ext = zext nneg i32 %mul to i64
  %add.ptr = getelementptr inbounds nuw [4 x i8], ptr %out, i64 %idx.ext
  %add.ptr17 = getelementptr inbounds nuw i8, ptr %out, i64 3908
  %6 = atomicrmw umax ptr %add.ptr17, i32 %1 syncscope("device") monotonic, align 4
  %add.ptr20 = getelementptr inbounds nuw i8, ptr %out, i64 3912
  %or = or i32 %1, 255
  %7 = atomicrmw and ptr %add.ptr20, i32 %or syncscope("device") monotonic, align 4
  %add.ptr23 = getelementptr inbounds nuw i8, ptr %out, i64 3916
  %8 = atomicrmw sub ptr %add.ptr23, i32 %1 syncscope("device") monotonic, align 4
  %add.ptr26 = getelementptr inbounds nuw i8, ptr %out, i64 3920
  %9 = atomicrmw fadd ptr %add.ptr26, float 5.000000e-01 syncscope("device") monotonic, align 4
  tail call void @llvm.nvvm.membar.gl()
  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %cmp28 = icmp samesign ult i32 %0, 16
  br i1 %cmp28, label %if.then29, label %if.end52

if.then29:                                        ; preds = %if.end5
  %and30 = and i32 %0, 3
  %idxprom31 = zext nneg i32 %and30 to i64
  %arrayidx32 = getelementptr inbounds nuw [4 x i8], ptr addrspacecast (ptr addrspace(3) @_ZZ1kE4sums to ptr), i64 %idxprom31
  %10 = load i32, ptr %arrayidx32, align 4, !tbaa !7
  store i32 %10, ptr %add.ptr, align 4, !tbaa !7
  %11 = load i32, ptr addrspacecast (ptr addrspace(3) @_ZZ1kE5least to ptr), align 4, !tbaa !7
  %arrayidx34 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 4
  store i32 %11, ptr %arrayidx34, align 4, !tbaa !7
  %12 = load i64, ptr addrspacecast (ptr addrspace(3) @_ZZ1kE4wide to ptr), align 8, !tbaa !8
  %shr = lshr i64 %12, %idxprom
  %conv = trunc i64 %shr to i32
  %arrayidx36 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 8
  store i32 %conv, ptr %arrayidx36, align 4, !tbaa !7
  %shr37 = lshr i64 %12, 32
  %conv38 = trunc nuw i64 %shr37 to i32
  %arrayidx39 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 12
  store i32 %conv38, ptr %arrayidx39, align 4, !tbaa !7
  %add.ptr43 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 32
  %13 = cmpxchg ptr %add.ptr43, i32 0, i32 %1 syncscope("device") monotonic monotonic, align 4
  %14 = extractvalue { i32, i1 } %13, 0
  %arrayidx45 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 16
  store i32 %14, ptr %arrayidx45, align 4, !tbaa !7
  %15 = cmpxchg ptr %add.ptr43, i32 %1, i32 5 syncscope("device") monotonic monotonic, align 4
  %16 = extractvalue { i32, i1 } %15, 0
  %arrayidx48 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 20
  store i32 %16, ptr %arrayidx48, align 4, !tbaa !7
  %17 = atomicrmw xchg ptr %add.ptr43, i32 9 syncscope("device") monotonic, align 4
  %arrayidx51 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 24
  store i32 %17, ptr %arrayidx51, align 4, !tbaa !7
  br label %if.end52

if.end52:                                         ; preds = %if.end5, %if.then29
  %18 = trunc i32 %1 to i1
  %19 = tail call noundef i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 0, i1 %18)
  %and55 = and i32 %1, 2
  %tobool.i = icmp ne i32 %and55, 0
  %20 = tail call noundef i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %tobool.i)
  %cmp57 = icmp eq i32 %1, 3
  %21 = tail call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %cmp57)
  %cmp60 = icmp ne i32 %1, 3
  %22 = tail call i1 @llvm.nvvm.vote.all.sync(i32 -1, i1 %cmp60)
  %and63 = and i32 %1, 255
  %conv64 = uitofp nneg i32 %and63 to float
  %23 = tail call noundef float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %conv64, i32 5, i32 31)
  %24 = tail call noundef i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %1, i32 3, i32 0)
  %25 = tail call noundef i32 @llvm.nvvm.shfl.sync.down.i32(i32 -1, i32 %1, i32 3, i32 6175)
  %mul68 = mul nuw nsw i32 %0, 7
  %rem = and i32 %mul68, 31
  %26 = tail call noundef i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %1, i32 range(i32 0, 32) %rem, i32 31)
  %27 = tail call noundef i32 @llvm.nvvm.redux.sync.umax(i32 %1, i32 -1)
  br i1 %cmp28, label %if.then72, label %if.end89

if.then72:                                        ; preds = %if.end52
  %conv.i = zext i1 %21 to i32
  %arrayidx73 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 36
  store i32 %20, ptr %arrayidx73, align 4, !tbaa !7
  %shl74 = select i1 %22, i32 2, i32 0
  %or75 = or disjoint i32 %shl74, %conv.i
  %shl76 = shl i32 %19, 2
  %or77 = or disjoint i32 %or75, %shl76
  %arrayidx78 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 40
  store i32 %or77, ptr %arrayidx78, align 4, !tbaa !7
  %mul79 = mul i32 %25, 3
  %xor80 = xor i32 %mul79, %24
  %arrayidx81 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 44
  store i32 %xor80, ptr %arrayidx81, align 4, !tbaa !7
  %xor82 = xor i32 %27, %26
  %arrayidx83 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 48
  store i32 %xor82, ptr %arrayidx83, align 4, !tbaa !7
  %arrayidx88 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 52
  store float %23, ptr %arrayidx88, align 4, !tbaa !7
  br label %if.end89

if.end89:                                         ; preds = %if.end52, %if.then72
  ret void
}

; Function Attrs: convergent nocallback nounwind
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #2

; Function Attrs: nocallback nounwind
declare void @llvm.nvvm.membar.gl() #3

; Function Attrs: convergent nocallback nounwind
declare i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32, i1) #1

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1) #4

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i1 @llvm.nvvm.vote.any.sync(i32, i1) #4

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i1 @llvm.nvvm.vote.all.sync(i32, i1) #4

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32) #4

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i32 @llvm.nvvm.shfl.sync.up.i32(i32, i32, i32, i32) #4

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i32 @llvm.nvvm.shfl.sync.down.i32(i32, i32, i32, i32) #4

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32) #4

; Function Attrs: convergent nocallback nounwind memory(inaccessiblemem: readwrite)
declare i32 @llvm.nvvm.redux.sync.umax(i32, i32) #4

attributes #0 = { convergent mustprogress noinline norecurse nounwind "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_90a" "target-features"="+ptx87,+sm_90a" "uniform-work-group-size" }
attributes #1 = { convergent nocallback nounwind }
attributes #2 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #3 = { nocallback nounwind }
attributes #4 = { convergent nocallback nounwind memory(inaccessiblemem: readwrite) }

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
!7 = !{!4, !4, i64 0}
!8 = !{!9, !9, i64 0}
!9 = !{!"long long", !5, i64 0}
